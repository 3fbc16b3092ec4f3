import { NightporterError } from '@nightporter/protocol';

/**
 * What an error of the driver means. Told by shape and not by class: a handler's client may be of another copy of the
 * driver than ours.
 */
export type DriverFault =
  /** The database was not reached, is electing, or its answer was lost. */
  | 'unavailable'
  /** A concurrent transaction won. */
  | 'conflict'
  /** The server no longer has the transaction: fail-over, time limit, or an earlier error that was caught and not passed on. */
  | 'aborted'
  | 'duplicate-key'
  /** The server refused the statement for another reason. */
  | 'refused'
  /** Not an error of the driver. */
  | 'foreign';

const DUPLICATE_KEY = 11000;
const WRITE_CONFLICT = 112;
const NO_SUCH_TRANSACTION = 251;

/** Raised by the driver before a request could reach the server, or while it waited for the answer. */
const UNAVAILABLE_NAMES = new Set([
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoPoolClearedError',
  'MongoPoolClearedOnNetworkError',
  'MongoPoolClosedError',
  'MongoServerSelectionError',
  'MongoWaitQueueTimeoutError',
  'MongoTopologyClosedError',
  'MongoServerClosedError',
  'MongoClientClosedError',
  'MongoNotConnectedError',
  'MongoStalePrimaryError',
  'MongoOperationTimeoutError',
]);

/** Network, shutdown, election and overload, as the server says it. */
const UNAVAILABLE_CODES = new Set([
  6, 7, 89, 91, 134, 189, 317, 358, 384, 402, 433, 449, 450, 453, 462, 9001, 10107, 11600, 11602, 13435, 13436,
]);

const CAUSES_MAX = 10;

/** Looks through the causes too: whoever wraps an error of the database does not make it his own. */
export function faultOf(error: unknown): DriverFault {
  let current = error;
  for (let depth = 0; depth < CAUSES_MAX && current instanceof Error; depth += 1, current = current.cause) {
    const fault = directFaultOf(current);
    if (fault !== 'foreign') return fault;
  }
  return 'foreign';
}

function directFaultOf(error: Error): DriverFault {
  if (!error.name.startsWith('Mongo')) return 'foreign';
  const code = codeOf(error);
  if (UNAVAILABLE_NAMES.has(error.name) || UNAVAILABLE_CODES.has(code)) return 'unavailable';
  if (code === DUPLICATE_KEY) return hasLabel(error, 'TransientTransactionError') ? 'conflict' : 'duplicate-key';
  if (code === NO_SUCH_TRANSACTION) return 'aborted';
  if (code === WRITE_CONFLICT || hasLabel(error, 'TransientTransactionError')) return 'conflict';
  return 'refused';
}

/** NaN where the error has none. */
export function codeOf(error: unknown): number {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'number' ? code : Number.NaN;
}

export function hasLabel(error: unknown, label: string): boolean {
  const labelled = error as { readonly hasErrorLabel?: (label: string) => unknown };
  return (
    error instanceof Error && typeof labelled.hasErrorLabel === 'function' && labelled.hasErrorLabel(label) === true
  );
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function storeUnavailable(operation: string, error: unknown): NightporterError {
  return new NightporterError('NP_STORE_UNAVAILABLE', `${operation}: ${messageOf(error)}`, { cause: error });
}

/** Runs a call of a port: whatever the driver throws becomes NP_STORE_UNAVAILABLE. `operation` names the call and its place. */
export async function guarded<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    throw faultOf(error) === 'foreign' || error instanceof NightporterError
      ? error
      : storeUnavailable(operation, error);
  }
}
