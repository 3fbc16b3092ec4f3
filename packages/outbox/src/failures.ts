/**
 * What an error of the driver means for a transaction. Told by shape, not by class: the client comes from the application, and may
 * be of another copy of the driver than ours.
 */
export type Failure =
  /** A concurrent transaction won: run again. */
  | { readonly kind: 'conflict' }
  /** The database did not answer, or is electing: run again. */
  | { readonly kind: 'unavailable' }
  /**
   * The server no longer has the transaction. After a fail-over or an overlong run: run again. But also when an error inside the
   * work was swallowed, and then running again is no help: a few times only.
   */
  | { readonly kind: 'aborted' }
  /** Anything else: the caller's. */
  | { readonly kind: 'fatal' };

const WRITE_CONFLICT = 112;
const NO_SUCH_TRANSACTION = 251;
const DUPLICATE_KEY = 11000;

const TRANSIENT = 'TransientTransactionError';

/** Raised before anything could reach the server, or while waiting for it. */
const UNAVAILABLE_NAMES = new Set([
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoPoolClearedError',
  'MongoPoolClearedOnNetworkError',
  'MongoServerSelectionError',
  'MongoWaitQueueTimeoutError',
]);

const CAUSES_MAX = 10;

/** Looks through `cause` too: business code may wrap what the driver threw. */
export function failureOf(error: unknown): Failure {
  let current = error;
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth += 1) {
    const failure = directFailureOf(current);
    if (failure.kind !== 'fatal') return failure;
    current = current.cause;
  }
  return { kind: 'fatal' };
}

function directFailureOf(error: Error): Failure {
  if (UNAVAILABLE_NAMES.has(error.name)) return { kind: 'unavailable' };
  if (!hasLabel(error, TRANSIENT)) return { kind: 'fatal' };
  if (codeOf(error) === NO_SUCH_TRANSACTION) return { kind: 'aborted' };
  return codeOf(error) === WRITE_CONFLICT || isDuplicateKey(error) ? { kind: 'conflict' } : { kind: 'unavailable' };
}

/** How a commit ended. */
export type CommitAnswer =
  | { readonly kind: 'committed' }
  /** The server says that it did not commit. That is the truth unless an earlier answer to the same commit was lost. */
  | { readonly kind: 'refused'; readonly error: unknown }
  /** It may have committed. */
  | { readonly kind: 'unanswered'; readonly error: unknown };

export function commitAnswerOf(error: unknown): CommitAnswer {
  return error instanceof Error && hasLabel(error, TRANSIENT)
    ? { kind: 'refused', error }
    : { kind: 'unanswered', error };
}

export function isDuplicateKey(error: unknown): boolean {
  return codeOf(error) === DUPLICATE_KEY;
}

/** Makes a retry loop, ours or the driver's, run the transaction again. */
export function markTransient(error: unknown): unknown {
  if (isLabelled(error)) error.addErrorLabel(TRANSIENT);
  return error;
}

/** What every error of the driver can do. */
interface Labelled {
  hasErrorLabel(label: string): boolean;
  addErrorLabel(label: string): void;
}

function isLabelled(error: unknown): error is Error & Labelled {
  return error instanceof Error && 'hasErrorLabel' in error && 'addErrorLabel' in error;
}

function hasLabel(error: Error, label: string): boolean {
  return isLabelled(error) && error.hasErrorLabel(label);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
