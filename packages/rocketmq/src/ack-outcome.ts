/** A status of RocketMQ's gRPC protocol. */
export interface BrokerStatus {
  readonly code: number;
  readonly message: string;
}

export interface AckResponse {
  readonly status: BrokerStatus | null;
  /** One for each message, in any order. */
  readonly entries: readonly BrokerStatus[];
}

export type AckOutcome =
  /** `stale`: messages whose invisibility had ended, or that somebody else has acknowledged. They may come again. */
  { readonly kind: 'acknowledged'; readonly stale: number } | { readonly kind: 'failed'; readonly reason: string };

const OK = 20_000;
const MULTIPLE_RESULTS = 30_000;
const INVALID_RECEIPT_HANDLE = 40_013;
const MESSAGE_NOT_FOUND = 40_401;

/** Whether a receipt handle that got this status is merely too late. */
export function isStale({ code }: Pick<BrokerStatus, 'code'>): boolean {
  return code === INVALID_RECEIPT_HANDLE || code === MESSAGE_NOT_FOUND;
}

/**
 * What became of one acknowledge request for `count` messages. The status of the request alone is not enough: it says
 * MULTIPLE_RESULTS when only some messages were acknowledged.
 */
export function judgeAcknowledgement({ status, entries }: AckResponse, count: number): AckOutcome {
  if (status === null) return { kind: 'failed', reason: 'the broker answered without a status' };
  const failed = entries.filter((entry) => entry.code !== OK && !isStale(entry));
  const [first] = failed;
  if (first !== undefined) {
    return { kind: 'failed', reason: `${failed.length} of ${count} messages: ${first.code} ${first.message}` };
  }
  const expected = status.code === OK || status.code === MULTIPLE_RESULTS || isStale(status);
  if (!expected) return { kind: 'failed', reason: `${status.code} ${status.message}` };
  if (entries.length < count) {
    return { kind: 'failed', reason: `the broker told the outcome of ${entries.length} of ${count} messages only` };
  }
  return { kind: 'acknowledged', stale: entries.filter(isStale).length };
}
