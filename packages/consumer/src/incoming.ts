import {
  MESSAGE_PROPERTIES,
  decodeEnvelope,
  digestOf,
  type EventEnvelope,
  type PublicationForm,
} from '@nightporter/contracts';
import { aggregateKey, isTraceparent, type AggregateKey, type MessageContent } from '@nightporter/protocol';
import type { ReadResult } from './options.js';
import type { Handlers } from './handler-ports.js';
import type { Delivery, IncomingEvent, ParkedEvent } from './ports.js';

/** An event in the hands of the engine: what the sequencer must know of it, and what its handler is given. */
export interface EventWork {
  readonly kind: 'event';
  readonly event: IncomingEvent;
  readonly content: MessageContent;
  /** The event as the catalogue reads it; null where no handler may see it. */
  readonly readable: EventEnvelope | null;
  /** The parked row that this process has claimed, if the event comes from there. */
  readonly claim: ParkedEvent | null;
  /** Delivered so often without an outcome that its handler may be what ends the process. */
  readonly isSuspect: boolean;
  /** Read from the producer's ledger: nobody has delivered it. */
  readonly isFromLedger: boolean;
}

/** What an event is, wherever it comes from. */
type Reading = Omit<EventWork, 'claim' | 'isSuspect' | 'isFromLedger'>;

export interface UnreadableWork {
  readonly kind: 'unreadable';
  readonly delivery: Delivery;
  readonly reason: string;
}

export type Work = EventWork | UnreadableWork;

export interface Reader<Session> {
  readonly handlers: Handlers<Session>;
  readonly read: (envelope: EventEnvelope) => ReadResult;
}

/** What a delivery holds. */
export function workOf<Session>(delivery: Delivery, reader: Reader<Session>, deliveriesTrusted: number): Work {
  const unreadable = (reason: string): UnreadableWork => ({ kind: 'unreadable', delivery, reason });
  const decoded = decodeEnvelope(delivery.body);
  if (decoded.kind === 'unreadable') return unreadable(decoded.reason);
  const { envelope } = decoded;
  const form = formOf(delivery);
  if (form === null) {
    const found = JSON.stringify(delivery.properties[MESSAGE_PROPERTIES.form]);
    return unreadable(`the property ${MESSAGE_PROPERTIES.form} is ${found}, not original or tombstone`);
  }
  const aggregate = keyOf(envelope);
  if (aggregate === null) return unreadable('the identity of the aggregate is not valid Unicode');
  const event: IncomingEvent = {
    envelope,
    aggregate,
    topic: delivery.topic,
    form,
    digest: delivery.properties[MESSAGE_PROPERTIES.digest] ?? '',
    messageId: delivery.messageId,
    ...createdAtOf(delivery),
    ...sentInOf(delivery, envelope),
  };
  return {
    ...eventWork(event, reader),
    claim: null,
    isSuspect: delivery.deliveryAttempt > deliveriesTrusted,
    isFromLedger: false,
  };
}

/** The work of a parked event that was claimed. */
export function workOfClaim<Session>(claim: ParkedEvent, reader: Reader<Session>): EventWork {
  return { ...eventWork(claim.event, reader), claim, isSuspect: false, isFromLedger: false };
}

/** The work of an event that the broker did not bring. */
export function workOfLedger<Session>(event: IncomingEvent, reader: Reader<Session>): EventWork {
  return { ...eventWork(event, reader), claim: null, isSuspect: false, isFromLedger: true };
}

function eventWork<Session>(event: IncomingEvent, reader: Reader<Session>): Reading {
  const { envelope } = event;
  const withoutHandler = (content: MessageContent): Reading => ({
    kind: 'event',
    event,
    content,
    readable: null,
  });
  const reason = corruptionOf(event);
  if (reason !== null) return withoutHandler({ kind: 'defect', code: 'NP_DIGEST_MISMATCH', reason });
  if (event.form === 'tombstone') return withoutHandler({ kind: 'tombstone' });
  // A type that nobody here handles needs no schema: a newer producer must not block the groups that do not care.
  if (!Object.hasOwn(reader.handlers, envelope.eventType)) return withoutHandler({ kind: 'unhandled' });
  const result = readSafely(envelope, reader);
  switch (result.kind) {
    case 'event':
      return { kind: 'event', event, content: { kind: 'event' }, readable: result.envelope };
    case 'unsupported':
      return withoutHandler({ kind: 'defect', code: 'NP_EVENT_VERSION_UNSUPPORTED', reason: result.reason });
    case 'invalid':
      return withoutHandler({ kind: 'defect', code: 'NP_EVENT_INVALID', reason: result.reason });
  }
}

/** Why an event is not the one that was written, or an operator's recorded edit of it; null where it is. */
export function corruptionOf({ digest, envelope }: Pick<IncomingEvent, 'digest' | 'envelope'>): string | null {
  const found = digestOf(envelope);
  if (found === digest) return null;
  const promised = digest === '' ? 'no digest' : `digest ${digest}`;
  return `Event ${envelope.eventId} came with ${promised}, but its envelope has digest ${found}.`;
}

/** A catalogue that throws must not take the whole consumer with it: the event waits for an operator. */
function readSafely<Session>(envelope: EventEnvelope, reader: Reader<Session>): ReadResult {
  try {
    return reader.read(envelope);
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    return {
      kind: 'invalid',
      reason: `Reading ${envelope.eventType} ${envelope.eventId} by the catalogue threw: ${cause}`,
    };
  }
}

function createdAtOf({ properties }: Delivery): { readonly createdAtMs?: number } {
  const text = properties[MESSAGE_PROPERTIES.createdAt] ?? '';
  return /^[1-9][0-9]{0,14}$/.test(text) ? { createdAtMs: Number(text) } : {};
}

function sentInOf({ properties }: Delivery, { traceparent }: EventEnvelope): { readonly sentIn?: string } {
  const sentIn = properties[MESSAGE_PROPERTIES.traceparent];
  return isTraceparent(sentIn) && sentIn !== traceparent ? { sentIn } : {};
}

function formOf(delivery: Delivery): PublicationForm | null {
  const form = delivery.properties[MESSAGE_PROPERTIES.form] ?? 'original';
  return form === 'original' || form === 'tombstone' ? form : null;
}

/** A lone surrogate in the identity cannot be encoded; such a message has no place in any sequence. */
export function keyOf(envelope: EventEnvelope): AggregateKey | null {
  try {
    return aggregateKey(envelope);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
