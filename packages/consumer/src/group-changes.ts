import { MESSAGE_PROPERTIES, decodeEnvelope, encodeEnvelope } from '@nightporter/contracts';
import type { Outcome, SequencerChange } from '@nightporter/protocol';
import { corruptionOf, keyOf, type EventWork, type UnreadableWork } from './incoming.js';
import type { ConsumerEvent } from './consumer-events.js';
import type { GroupChange, IncomingEvent, ParkedFailure } from './ports.js';

/** What a parked event is stored with. */
export interface Parking {
  readonly attempts: number;
  readonly retryInMs: number | null;
  readonly failure: ParkedFailure | null;
  readonly isSuspect?: true;
}

/** How an outcome of the sequencer parks, where nothing else was decided. */
export function parkingOf(work: EventWork, outcome: Outcome): Parking {
  const claims = work.claim?.attempts ?? 0;
  switch (outcome.kind) {
    case 'retry':
      return { attempts: claims, retryInMs: 0, failure: null, ...(work.isSuspect ? { isSuspect: true } : {}) };
    case 'dead':
      return {
        attempts: claims,
        retryInMs: null,
        failure: { code: outcome.code, message: outcome.reason, stack: null },
      };
    case 'gap':
    case 'behind':
    case 'before-start':
    case 'duplicate':
    case 'version-conflict':
    case 'advance':
    case 'apply':
    case 'ignore':
    case 'skip':
      // A claim that came too early did not run, so it is not counted.
      return { attempts: Math.max(0, claims - 1), retryInMs: null, failure: null };
  }
}

/** The number of the attempt that runs now. */
export function attemptOf(work: EventWork): number {
  return work.claim?.attempts ?? 1;
}

/** The writes of the sequencer's changes for one event; `occupant` is parked where it belongs. */
export function groupChangesOf(
  work: EventWork,
  changes: readonly SequencerChange[],
  { occupant, parking }: { occupant: IncomingEvent | null; parking: Parking },
): readonly GroupChange[] {
  const { event } = work;
  const { aggregate, envelope } = event;
  return changes.flatMap((change): GroupChange | [] => {
    switch (change.kind) {
      case 'settle':
        return { kind: 'settle', event, outcome: change.outcome, attempts: attemptOf(work) };
      case 'position':
        return { kind: 'position', aggregate, position: change.position };
      case 'count-duplicate':
        return { kind: 'count-duplicate', eventId: envelope.eventId };
      case 'park':
        return {
          kind: 'park',
          event,
          state: change.state,
          ...parking,
          ...(change.replaces === true ? { replaces: true } : {}),
        };
      case 'make-due':
        return { kind: 'make-due', aggregate, version: change.version };
      case 'unpark':
        return { kind: 'unpark', aggregate, version: envelope.aggregateVersion };
      case 'set-aside':
        return setAsideConflict(work, change.reason);
      case 'set-occupant-aside':
        return occupant === null ? [] : setAsideCorrupt(occupant);
    }
  });
}

export function setAsideUnreadable({ delivery, reason }: UnreadableWork): GroupChange & { kind: 'set-aside' } {
  const { body, messageId, properties, topic } = delivery;
  const message = `Message ${messageId} of topic ${topic} cannot be read: ${reason}.`;
  const failure = { code: 'NP_MESSAGE_UNREADABLE', message, stack: null };
  return { kind: 'set-aside', id: messageId, topic, messageId, body, properties, failure };
}

function setAsideConflict({ event }: EventWork, reason: string): GroupChange & { kind: 'set-aside' } {
  return setAside(event, {
    id: event.envelope.eventId,
    failure: { code: 'NP_VERSION_CONFLICT', message: reason, stack: null },
  });
}

/** By the message's id, since nothing that its envelope says can be trusted. */
function setAsideCorrupt(event: IncomingEvent): GroupChange & { kind: 'set-aside' } {
  const message = `${corruptionOf(event) ?? 'It was corrupt.'} The event that was written has taken its place.`;
  return setAside(event, { id: event.messageId, failure: { code: 'NP_DIGEST_MISMATCH', message, stack: null } });
}

function setAside(
  event: IncomingEvent,
  why: { readonly id: string; readonly failure: ParkedFailure },
): GroupChange & { kind: 'set-aside' } {
  return {
    kind: 'set-aside',
    topic: event.topic,
    messageId: event.messageId,
    body: event.damagedText === undefined ? encodeEnvelope(event.envelope) : Buffer.from(event.damagedText, 'utf8'),
    properties: { [MESSAGE_PROPERTIES.form]: event.form, [MESSAGE_PROPERTIES.digest]: event.digest },
    ...why,
  };
}

/** One transaction writes a position once: the last state counts, and stands where the first stood. */
export function withPositionsOnce(changes: readonly GroupChange[]): readonly GroupChange[] {
  const last = new Map<string, GroupChange>();
  for (const change of changes) if (change.kind === 'position') last.set(change.aggregate, change);
  return changes.flatMap((change) => {
    if (change.kind !== 'position') return [change];
    const final = last.get(change.aggregate);
    last.delete(change.aggregate);
    return final === undefined ? [] : [final];
  });
}

/** What the observer is told of a change, once it is committed. */
export function toldOf(work: EventWork, changes: readonly GroupChange[], outcome: Outcome): readonly ConsumerEvent[] {
  const { event } = work;
  const told: ConsumerEvent[] = outcome.kind === 'duplicate' ? [{ kind: 'duplicate', event }] : [];
  for (const change of changes) {
    if (change.kind === 'settle') {
      told.push({ kind: 'settled', event, outcome: change.outcome, attempt: change.attempts });
    } else if (change.kind === 'park') {
      told.push({ kind: 'parked', event, state: change.state, failure: change.failure });
    } else if (change.kind === 'set-aside') {
      told.push(toldOfSetAside(change));
    }
  }
  return told;
}

/** From the message as it is kept: it need not be the event in whose place it stood. */
export function toldOfSetAside(change: GroupChange & { kind: 'set-aside' }): ConsumerEvent & { kind: 'set-aside' } {
  const { body, failure, id, kind, messageId, properties, topic } = change;
  const decoded = decodeEnvelope(body);
  const envelope = decoded.kind === 'unreadable' ? null : decoded.envelope;
  const aggregate = envelope === null ? null : keyOf(envelope);
  const traceparent = envelope?.traceparent ?? properties[MESSAGE_PROPERTIES.traceparent] ?? null;
  return { kind, id, failure, messageId, topic, envelope, aggregate, traceparent };
}
