import type { AggregateVersion, Epoch, EventId, Namespace, Slot } from '@nightporter/protocol';
import type { EventHeaders, JsonValue, PublicationForm } from './envelope.js';

export type OutboxStatus = 'PENDING' | 'PROCESSING' | 'PUBLISHED' | 'FAILED' | 'DEAD';

/** An operator's request to publish a tombstone instead of the event. */
export interface SkipRequest {
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
}

/** Where an event went. */
export interface PublicationRecord {
  readonly messageId: string;
  readonly topic: string;
  /** Owner of the lease under which it was sent. */
  readonly relay: string;
  readonly epoch: Epoch;
  readonly capturedAt: Date;
  readonly form: PublicationForm;
}

/** A document of `outbox`, as stored. Field names are part of the contract. */
export interface OutboxDocument {
  readonly _id: EventId;
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly aggregateVersion: AggregateVersion;
  readonly eventType: string;
  readonly eventVersion: number;
  readonly topic: string;
  /** Message group at the broker; fixed for an aggregate, kept in its head. */
  readonly eventKey: string;
  readonly payload: JsonValue;
  /** Digest of the canonical envelope in its original form. */
  readonly digest: string;
  readonly occurredAt: Date;
  readonly headers: EventHeaders;
  readonly slot: Slot;
  readonly status: OutboxStatus;
  /** Present until the event is published. */
  readonly unsettled?: true;
  readonly retryCount: number;
  readonly nextRetryAt: Date | null;
  readonly lastError: string | null;
  /** Database clock, right before the insert. */
  readonly createdAt: Date;
  /** Database clock; set by the first PUBLISHED mark and never changed. */
  readonly publishedAt: Date | null;
  readonly updatedAt: Date;
  /** Raised by every change. */
  readonly revision: number;
  /** The polling relay that claimed the row last; means something only while it is PROCESSING. */
  readonly claim?: { readonly relay: string; readonly epoch: Epoch };
  readonly publication: PublicationRecord | null;
  readonly skip: SkipRequest | null;
  /** True once a send of the original ended without an answer: the broker may have it. */
  readonly unanswered: boolean;
}

/** A document of `outbox_heads`: `_id` is the aggregate's key. */
export interface OutboxHeadDocument {
  readonly _id: string;
  readonly version: AggregateVersion;
  readonly eventKey: string;
}

/** What the relay needs of an outbox document, and the namespace that marks go back to. */
export interface OutboxRow extends Pick<
  OutboxDocument,
  | 'source'
  | 'aggregateType'
  | 'aggregateId'
  | 'aggregateVersion'
  | 'eventType'
  | 'eventVersion'
  | 'topic'
  | 'eventKey'
  | 'payload'
  | 'digest'
  | 'headers'
  | 'slot'
  | 'status'
  | 'retryCount'
  | 'revision'
  | 'unanswered'
> {
  readonly namespace: Namespace;
  readonly eventId: EventId;
  /** RFC 3339 in UTC with milliseconds. */
  readonly occurredAt: string;
  /** `createdAt` of the document, in milliseconds since 1970; absent where it has none. */
  readonly createdAtMs?: number;
  /** Milliseconds until `nextRetryAt` by the database's clock when the row was read; 0 when due or never failed. */
  readonly dueInMs: number;
  /** `tombstone` once an operator has asked to skip the event. */
  readonly form: PublicationForm;
}
