/**
 * What operators do with the dead letters of one consumer group.
 *
 * A dead letter is the row in `parked` of the version that is next in line; everything behind it in its aggregate waits, parked too. It
 * leaves by a retry (the row becomes due, and a worker claims it), by an edit and retry, or by a skip (the version is settled). Each
 * action is one transaction that holds only while the row is dead and has the revision that the operator saw, and that writes the record
 * of the action; the workers then drain what waits behind, in order.
 */
import type { GroupActionDocument, ParkedDocument } from '@nightporter/mongo';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import type { DeadLetter, SetAsideMessage } from './documents.js';
import type { EventCheck } from './edit.js';
import type { Decision } from './requests.js';
import type { SkipVerdict } from './skip.js';

export interface DeadLettersOptions {
  readonly client: MongoClient;
  /** The consumer's own database. */
  readonly database: string;
  readonly group: string;
  /** As the group's workers have it; default as theirs. */
  readonly inboxRetentionMs?: number;
  /** Judges an edited event as the group's handlers read it, usually `catalogue.read`. By default any JSON is taken. */
  readonly read?: EventCheck;
}

/** Which dead letter, as the operator saw it. */
export interface Target {
  readonly eventId: EventId;
  readonly revision: number;
}

export interface DeadLetterFilter {
  readonly eventType?: string;
  /** `NP_HANDLER_FAILED` … */
  readonly code?: string;
  /** Part of the message of the failure. */
  readonly reason?: string;
  readonly aggregate?: AggregateKey;
}

export type ActionResult =
  | { readonly kind: 'done' }
  /** Somebody, or a worker, was faster: look again and decide anew. */
  | { readonly kind: 'changed'; readonly state: ParkedDocument['state']; readonly revision: number }
  /** The group has no such parked event (any more). */
  | { readonly kind: 'gone' };

export type SkipResult =
  | { readonly kind: 'done'; readonly verdict: SkipVerdict }
  | Exclude<ActionResult, { kind: 'done' }>
  /** A lower version than this one is not settled yet. */
  | { readonly kind: 'not-next'; readonly position: number };

export interface BulkResult {
  /** Names the actions in their records. */
  readonly bulk: string;
  readonly results: readonly { readonly eventId: EventId; readonly result: ActionResult | SkipResult }[];
}

export type DismissResult =
  | { readonly kind: 'done' }
  /** It came again meanwhile. */
  | { readonly kind: 'changed'; readonly count: number }
  | { readonly kind: 'gone' };

export interface DeadLetters {
  /** At most `limit` (default and most 1,000), those that failed first before others. */
  list(filter?: DeadLetterFilter, limit?: number): Promise<readonly DeadLetter[]>;
  /** A dead letter, how many events of its aggregate wait behind it, and what operators did with it before; null when there is none. */
  show(eventId: EventId): Promise<{
    readonly deadLetter: DeadLetter;
    readonly waitingBehind: number;
    readonly actions: readonly GroupActionDocument[];
  } | null>;
  /** Its attempts begin anew. */
  retry(target: Target, decision: Decision): Promise<ActionResult>;
  /** Has `data` applied in place of the event's own; the message as it came is kept, and its digest goes into the inbox too. */
  editAndRetry(target: Target, edit: Decision & { readonly data: unknown }): Promise<ActionResult>;
  /** Settles the version as `skipped`, without an effect. */
  skip(target: Target, decision: Decision): Promise<SkipResult>;
  /** What `bulk` would act upon if it were asked now, in its order; nothing is written. The filter may not be empty. */
  planBulk(request: { readonly filter: DeadLetterFilter; readonly limit?: number }): Promise<readonly DeadLetter[]>;
  /** The same for all that a filter finds, one transaction each; the filter may not be empty. */
  bulk(
    action: 'retry' | 'skip',
    request: Decision & { readonly filter: DeadLetterFilter; readonly limit?: number },
  ): Promise<BulkResult>;
  /** Messages without a place in any sequence that nobody has dismissed. */
  listSetAside(limit?: number): Promise<readonly SetAsideMessage[]>;
  /** Takes one from the list; it is kept, and comes back to the list should a copy come. No position changes. */
  dismiss(target: { readonly id: string; readonly count: number }, decision: Decision): Promise<DismissResult>;
  /** What operators did in this group, newest first. */
  actions(limit?: number): Promise<readonly GroupActionDocument[]>;
}
