import type { IncomingEvent, ParkedEvent } from '@nightporter/consumer';
import type { EventEnvelope } from '@nightporter/contracts';
import type { ParkedDocument, StoredEvent } from './documents.js';

export function storedEvent(event: IncomingEvent): StoredEvent {
  const { envelope, topic, form, digest, messageId } = event;
  const { eventId, eventType } = envelope;
  return { eventId, eventType, envelope: JSON.stringify(envelope), topic, form, digest, messageId };
}

export type StoredParked = Pick<ParkedDocument, 'aggregate' | 'event' | 'state' | 'attempts' | 'revision' | 'original'>;

export function parkedEvent({ aggregate, event, state, attempts, revision, original }: StoredParked): ParkedEvent {
  const { topic, form, digest, messageId } = event;
  const envelope = JSON.parse(event.envelope) as EventEnvelope;
  const written = original === undefined ? {} : { writtenDigest: original.digest };
  return { event: { envelope, aggregate, topic, form, digest, ...written, messageId }, state, attempts, revision };
}
