import type { EventId } from '@nightporter/protocol';
import type { EventEnvelope, EventHeaders, PublicationForm } from './envelope.js';
import type { OutboxDocument } from './outbox-row.js';

/** The fields of an outbox row or document that make its envelope; the id and the date in either spelling. */
export type EnvelopeSource = Pick<
  OutboxDocument,
  'source' | 'eventType' | 'eventVersion' | 'aggregateType' | 'aggregateId' | 'aggregateVersion' | 'headers' | 'payload'
> &
  ({ readonly eventId: EventId } | { readonly _id: EventId }) & { readonly occurredAt: string | Date };

/** The envelope that is published for an outbox row: its original, or the tombstone that stands in for it after a skip. */
export function envelopeOf(row: EnvelopeSource, form: PublicationForm): EventEnvelope {
  return {
    eventId: 'eventId' in row ? row.eventId : row._id,
    source: row.source,
    eventType: row.eventType,
    eventVersion: row.eventVersion,
    aggregateType: row.aggregateType,
    aggregateId: row.aggregateId,
    aggregateVersion: row.aggregateVersion,
    occurredAt: typeof row.occurredAt === 'string' ? row.occurredAt : row.occurredAt.toISOString(),
    ...presentHeaders(row.headers),
    data: form === 'tombstone' ? null : row.payload,
  };
}

const HEADER_NAMES = ['traceparent', 'tracestate', 'tenantId', 'correlationId', 'causationId'] as const;

/** Only the headers that have a value: a driver may read an absent one back as null or undefined. */
function presentHeaders(headers: EventHeaders): EventHeaders {
  const present: Partial<Record<keyof EventHeaders, string>> = {};
  for (const name of HEADER_NAMES) {
    const value: unknown = headers[name];
    if (typeof value === 'string') present[name] = value;
  }
  return present;
}
