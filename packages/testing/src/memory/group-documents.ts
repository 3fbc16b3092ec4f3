import type {
  DeadLetterCopy,
  IncomingEvent,
  InboxRecord,
  ParkedFailure,
  ParkedState,
  Position,
} from '@nightporter/consumer';
import type { JsonValue } from '@nightporter/contracts';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { CommittedEvent } from './outbox.js';

export interface InboxDocument extends InboxRecord {
  readonly attempts: number;
  readonly duplicates: number;
  readonly processedAtMs: number;
}

export interface ParkedDocument {
  readonly event: IncomingEvent;
  readonly state: ParkedState;
  readonly attempts: number;
  readonly revision: number;
  readonly nextRetryAtMs: number | null;
  readonly parkedAtMs: number;
  readonly failure: ParkedFailure | null;
  /** Claimed, and nothing was heard of it since. */
  readonly isRunning?: boolean;
  readonly isSuspect?: boolean;
}

/** A message that cannot be sequenced. */
export interface AsideDocument {
  readonly id: string;
  readonly topic: string;
  readonly messageId: string;
  readonly body: Uint8Array;
  readonly properties: Readonly<Record<string, string>>;
  readonly failure: ParkedFailure;
  readonly count: number;
}

export type GroupDocument =
  | { readonly kind: 'position'; readonly aggregate: AggregateKey; readonly position: Position }
  | { readonly kind: 'inbox'; readonly inbox: InboxDocument }
  | { readonly kind: 'inbox-version'; readonly eventId: EventId }
  | { readonly kind: 'parked'; readonly parked: ParkedDocument }
  | { readonly kind: 'aside'; readonly aside: AsideDocument }
  | { readonly kind: 'copy'; readonly copy: DeadLetterCopy; readonly nextTryAtMs: number }
  | { readonly kind: 'business'; readonly value: JsonValue };

/** What one transaction committed, for whoever keeps the history. */
export interface GroupCommit {
  readonly settled: readonly InboxDocument[];
  readonly effects: readonly string[];
  readonly emitted: readonly CommittedEvent[];
}
