import {
  NO_POSITION,
  type AggregateKey,
  type EventId,
  type ParkedRow,
  type SequencedMessage,
  type SequencerChange,
  type SequencerPosition,
  type SequencerView,
} from '@nightporter/protocol';
import type { Forgotten } from './forgotten.js';
import { corruptionOf, type EventWork } from './incoming.js';
import { versionKey, type GroupState, type IncomingEvent, type ParkedEvent } from './ports.js';

export function messageOf(work: EventWork): SequencedMessage {
  const { aggregate, envelope } = work.event;
  return {
    eventId: envelope.eventId,
    aggregate,
    version: envelope.aggregateVersion,
    content: work.content,
    claimed: work.claim !== null,
  };
}

/**
 * What a transaction knows of its group: the documents that it loaded, with the changes decided so far on top, so that each
 * message of a batch is judged by what the messages before it leave behind.
 */
export class GroupView {
  readonly #positions: Map<AggregateKey, SequencerPosition>;
  readonly #settledEvents: Map<EventId, { aggregate: AggregateKey; version: number }>;
  readonly #settledVersions: Map<string, EventId>;
  readonly #parked: Map<string, Pick<ParkedEvent, 'event' | 'state'>>;

  readonly #passed: ReadonlySet<string>;

  constructor(state: GroupState, { held, passed }: Forgotten) {
    this.#passed = passed;
    this.#positions = new Map(state.positions);
    this.#settledEvents = new Map(state.inboxByEvent);
    const settledVersions = [...state.inboxByVersion].map(([key, record]) => [key, record.eventId] as const);
    this.#settledVersions = new Map([...held, ...settledVersions]);
    this.#parked = new Map(state.parked);
  }

  around({ aggregate, eventId, version }: SequencedMessage): SequencerView {
    return {
      position: this.#positions.get(aggregate) ?? NO_POSITION,
      settledAs: this.#settledEvents.get(eventId) ?? null,
      settledHere: this.#settledVersions.get(versionKey(aggregate, version)) ?? null,
      parkedHere: this.#rowAt(aggregate, version),
      parkedNext: this.#rowAt(aggregate, version + 1),
      isPassed: this.#passed.has(versionKey(aggregate, version)),
    };
  }

  /** The message that is parked where this one belongs. */
  occupant({ aggregate, envelope }: IncomingEvent): IncomingEvent | null {
    return this.#parked.get(versionKey(aggregate, envelope.aggregateVersion))?.event ?? null;
  }

  apply(event: IncomingEvent, changes: readonly SequencerChange[]): void {
    const { aggregate, envelope } = event;
    const { aggregateVersion: version, eventId } = envelope;
    const here = versionKey(aggregate, version);
    for (const change of changes) {
      switch (change.kind) {
        case 'settle':
          this.#settledEvents.set(eventId, { aggregate, version });
          this.#settledVersions.set(here, eventId);
          break;
        case 'position':
          this.#positions.set(aggregate, change.position);
          break;
        case 'park':
          this.#parked.set(here, { event, state: change.state });
          break;
        case 'unpark':
          this.#parked.delete(here);
          break;
        case 'make-due':
          this.#makeDue(versionKey(aggregate, change.version));
          break;
        case 'count-duplicate':
        case 'set-aside':
        case 'set-occupant-aside':
          break;
      }
    }
  }

  #rowAt(aggregate: AggregateKey, version: number): ParkedRow | null {
    const row = this.#parked.get(versionKey(aggregate, version));
    if (row === undefined) return null;
    return { eventId: row.event.envelope.eventId, state: row.state, isCorrupt: corruptionOf(row.event) !== null };
  }

  #makeDue(key: string): void {
    const row = this.#parked.get(key);
    if (row !== undefined && row.state !== 'dead') this.#parked.set(key, { ...row, state: 'retry' });
  }
}
