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

const REASONS_MAX = 10;

/**
 * Looks through the reasons of an error too: business code may wrap what the driver threw in a `cause`, and a bulk write wraps what
 * failed it in its `errorResponse`, without its labels.
 */
export function failureOf(error: unknown): Failure {
  const reasons: unknown[] = [error];
  for (const reason of reasons) {
    if (!isObject(reason)) continue;
    const failure = directFailureOf(reason);
    if (failure.kind !== 'fatal') return failure;
    if (reasons.length < REASONS_MAX) reasons.push(reason['errorResponse'], reason['cause']);
  }
  return { kind: 'fatal' };
}

/** The codes of a lost transaction say so by themselves; the label covers all others that the server knows to be harmless. */
function directFailureOf(reason: Record<string, unknown>): Failure {
  if (!isOfDriver(reason)) return { kind: 'fatal' };
  if (typeof reason['name'] === 'string' && UNAVAILABLE_NAMES.has(reason['name'])) return { kind: 'unavailable' };
  if (reason['code'] === WRITE_CONFLICT) return { kind: 'conflict' };
  if (reason['code'] === NO_SUCH_TRANSACTION) return { kind: 'aborted' };
  if (!hasLabel(reason, TRANSIENT)) return { kind: 'fatal' };
  return isDuplicateKey(reason) ? { kind: 'conflict' } : { kind: 'unavailable' };
}

/** An error of the driver, or an answer of the server as it came: not any error of the business that has a code. */
function isOfDriver(reason: Record<string, unknown>): boolean {
  return isLabelled(reason) || typeof reason['errmsg'] === 'string';
}

/** How a commit ended. */
export type CommitAnswer =
  | { readonly kind: 'committed' }
  /** The server says that it did not commit. That is the truth unless an earlier answer to the same commit was lost. */
  | { readonly kind: 'refused'; readonly error: unknown }
  /** It may have committed. */
  | { readonly kind: 'unanswered'; readonly error: unknown };

export function commitAnswerOf(error: unknown): CommitAnswer {
  return isObject(error) && hasLabel(error, TRANSIENT) ? { kind: 'refused', error } : { kind: 'unanswered', error };
}

export function isDuplicateKey(error: unknown): boolean {
  return isObject(error) && error['code'] === DUPLICATE_KEY;
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

function isLabelled(error: unknown): error is Labelled {
  return (
    isObject(error) && typeof error['hasErrorLabel'] === 'function' && typeof error['addErrorLabel'] === 'function'
  );
}

/** An error of the driver, or an answer of the server as it came. */
function hasLabel(reason: Record<string, unknown>, label: string): boolean {
  if (isLabelled(reason)) return reason.hasErrorLabel(label);
  return Array.isArray(reason['errorLabels']) && reason['errorLabels'].includes(label);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
