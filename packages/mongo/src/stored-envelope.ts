import { decodeEnvelope, type EventEnvelope } from '@nightporter/contracts';
import { aggregateIdentity, aggregateKey, aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { StoredEvent } from './documents.js';

/** An event as a document of ours keeps it, and where it belongs. */
export interface StoredPlace {
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly event: Pick<StoredEvent, 'eventId' | 'eventType' | 'envelope'>;
}

export type StoredEnvelope =
  | { readonly kind: 'whole'; readonly envelope: EventEnvelope }
  /** Changed since it was stored. `envelope` is what its document still tells of the event, with the text that was found as its data. */
  | { readonly kind: 'damaged'; readonly envelope: EventEnvelope; readonly reason: string };

const NO_DATE = new Date(0).toISOString();

/**
 * Reads a stored envelope, whatever was done to it by hand. What stands in for a damaged one has its place, and another digest than the event
 * that was written: it is taken for a corrupt copy of that, which is never applied.
 */
export function storedEnvelope({ aggregate, version, event }: StoredPlace): StoredEnvelope {
  const { eventId, eventType, envelope: text } = event;
  const damaged = (reason: string): StoredEnvelope => ({
    kind: 'damaged',
    reason,
    envelope: {
      ...aggregateIdentity(aggregate),
      eventId,
      eventType,
      eventVersion: 1,
      aggregateVersion: aggregateVersion(version),
      occurredAt: NO_DATE,
      data: text,
    },
  });
  const decoded = decodeEnvelope(Buffer.from(text, 'utf8'));
  if (decoded.kind === 'unreadable') return damaged(decoded.reason);
  const { envelope } = decoded;
  if (envelope.eventId !== eventId) return damaged(`it names event ${envelope.eventId}`);
  if (aggregateKey(envelope) !== aggregate || envelope.aggregateVersion !== version) {
    return damaged(`it names version ${envelope.aggregateVersion} of ${aggregateKey(envelope)}`);
  }
  return { kind: 'whole', envelope };
}
