import type { IncomingEvent, ParkedEvent } from '@nightporter/consumer';
import type { ParkedDocument, StoredEvent } from './documents.js';
import { storedEnvelope } from './stored-envelope.js';

export function storedEvent(event: IncomingEvent): StoredEvent {
  const { envelope, topic, form, digest, messageId, createdAtMs, sentIn, damagedText } = event;
  const created = createdAtMs === undefined ? {} : { createdAt: new Date(createdAtMs) };
  const { eventId, eventType } = envelope;
  const sent = sentIn === undefined ? {} : { sentIn };
  return {
    eventId,
    eventType,
    envelope: damagedText ?? JSON.stringify(envelope),
    topic,
    form,
    digest,
    messageId,
    ...created,
    ...sent,
  };
}

export type StoredParked = Pick<
  ParkedDocument,
  'aggregate' | 'version' | 'event' | 'state' | 'attempts' | 'revision' | 'original' | 'isSuspect'
>;

export function parkedEvent({
  aggregate,
  version,
  event,
  state,
  attempts,
  revision,
  original,
  isSuspect,
}: StoredParked): ParkedEvent {
  const { topic, form, digest, messageId, createdAt, sentIn } = event;
  const created = createdAt === undefined ? {} : { createdAtMs: createdAt.getTime() };
  const stored = storedEnvelope({ aggregate, version, event });
  const written = original === undefined ? {} : { writtenDigest: original.digest };
  return {
    event: {
      envelope: stored.envelope,
      aggregate,
      topic,
      form,
      digest,
      ...written,
      messageId,
      ...created,
      ...(sentIn === undefined ? {} : { sentIn }),
      ...(stored.kind === 'damaged' ? { damagedText: stored.text } : {}),
    },
    state,
    attempts,
    revision,
    ...(isSuspect === true ? { isSuspect } : {}),
  };
}
