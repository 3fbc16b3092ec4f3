import { decodeEnvelope, type EventEnvelope } from '@nightporter/contracts';
import { keyOf } from '@nightporter/consumer';
import { aggregateIdentity, aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { StoredEvent } from './documents.js';

/** An event as a document of ours keeps it, and where it belongs. */
export interface StoredPlace {
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly event: Pick<StoredEvent, 'eventId' | 'eventType' | 'envelope'>;
}

export type StoredEnvelope =
  /** As it names itself: whether its data is what was written, only its digest tells. */
  | { readonly kind: 'whole'; readonly envelope: EventEnvelope }
  /**
   * No envelope of this event any more: `text` was found. `envelope` stands in for it with what the document still tells of the event; it must never be
   * stored, for it would pass for whole.
   */
  | {
      readonly kind: 'damaged';
      readonly envelope: EventEnvelope;
      readonly text: string;
      readonly reason: string;
    };

const NO_DATE = new Date(0).toISOString();

/**
 * Reads a stored envelope, whatever was done to it by hand. What stands in for a damaged one has its place, and another digest than the event
 * that was written: it is taken for a corrupt copy of that, which is never applied.
 */
export function storedEnvelope({ aggregate, version, event }: StoredPlace): StoredEnvelope {
  const { eventId, eventType } = event;
  const text = textOf(event.envelope);
  const damaged = (reason: string): StoredEnvelope => ({
    kind: 'damaged',
    reason,
    text,
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
  const key = keyOf(envelope);
  if (key !== aggregate || envelope.aggregateVersion !== version) {
    return damaged(`it names version ${envelope.aggregateVersion} of ${key ?? 'no aggregate'}`);
  }
  return { kind: 'whole', envelope };
}

/** A tool that edits documents may have left something other than text: JSON of what it shows may still be the event. */
function textOf(found: unknown): string {
  if (typeof found === 'string') return found;
  return found === undefined ? '' : JSON.stringify(found);
}
