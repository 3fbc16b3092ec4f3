import type { AggregateVersion, EventId } from '@nightporter/protocol';

/** Plain JSON: all that a payload may hold. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };
export type JsonObject = { readonly [key: string]: JsonValue };

/** What travels beside the data of an event. Absent means unknown; nothing is ever the empty string. */
export interface EventHeaders {
  /** W3C trace context of the request that caused the event. */
  readonly traceparent?: string;
  readonly tracestate?: string;
  readonly tenantId?: string;
  /** Names the whole story; defaults to the eventId of its first event. */
  readonly correlationId?: string;
  /** eventId (or request id) of the direct cause. */
  readonly causationId?: string;
}

/**
 * An event as every consumer reads it: the UTF-8 JSON body of the message.
 * `data` is the payload of the outbox row, null in a tombstone.
 */
export interface EventEnvelope<Data = JsonValue> extends EventHeaders {
  readonly eventId: EventId;
  /** The producing service. */
  readonly source: string;
  /** Past tense, `OrderCreated`. */
  readonly eventType: string;
  /** Version of the schema of this type, 1, 2, 3 … */
  readonly eventVersion: number;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly aggregateVersion: AggregateVersion;
  /** RFC 3339 in UTC with milliseconds. */
  readonly occurredAt: string;
  readonly data: Data;
}

/** Whether the original event or, after an operator's skip, an empty stand-in with its id and version was published. */
export type PublicationForm = 'original' | 'tombstone';
