import type { OutboxStatus } from '@nightporter/contracts';
import type { RowReference } from './ports.js';

/** What an operator asks for, and on whose word. */
export interface OutboxActionRequest extends RowReference {
  readonly by: string;
  readonly reason: string;
}

export type OutboxActionOutcome =
  /** The row is PENDING again, at this revision; the relay sends it. */
  | { readonly kind: 'done'; readonly revision: number }
  /** The row is not DEAD: published, waiting for its next attempt, or decided by somebody else already. Nothing was written. */
  | { readonly kind: 'refused'; readonly status: OutboxStatus }
  | { readonly kind: 'missing' };

/**
 * What an operator may do about an event that is DEAD in the outbox. Both edit the row, only while it is DEAD, and raise its
 * revision, so that of two operators one is refused; the relay alone sends. The row is PENDING afterwards, with no attempt
 * counted. Each action that is done is on record.
 */
export interface OutboxActions {
  /** Has the relay try again, in the form that the row asks for. */
  retry(request: OutboxActionRequest): Promise<OutboxActionOutcome>;
  /**
   * Has the relay publish a tombstone in place of the event, for good. A request: where an original was sent without an answer, a
   * group may have applied it.
   */
  skip(request: OutboxActionRequest): Promise<OutboxActionOutcome>;
}
