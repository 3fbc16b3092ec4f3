import { NightporterError } from '@nightporter/protocol';
import type { EventEnvelope, JsonValue } from './envelope.js';
import type { EventDefinition } from './event-definition.js';
import { problemOf } from './judge.js';
import { NAME_LENGTH_MAX } from './limits.js';
import { isName, isTopic } from './names.js';
import { readEnvelope, type ReadVerdict, type Versions } from './read.js';
import { shown } from './text.js';

export interface Catalogue<Events extends readonly EventDefinition[] = readonly EventDefinition[]> {
  readonly events: Events;
  readonly topics: readonly string[];
  /** The definition in that version, or the latest. */
  find(eventType: string, eventVersion?: number): EventDefinition | undefined;
  /**
   * The definition of an event that is about to be written.
   * @throws NP_EVENT_UNKNOWN for a type or version that is not here, NP_EVENT_INVALID when the payload does not fit its schema.
   */
  validate(event: {
    readonly eventType: string;
    readonly eventVersion?: number | undefined;
    readonly payload: JsonValue;
  }): EventDefinition;
  /**
   * Judges an original event before its handler sees it (a tombstone has no data to judge), and brings data of an older version to the
   * newest one; the envelope then carries that version. A type that is not here passes: a group without a handler for it settles it
   * as ignored.
   */
  read(envelope: EventEnvelope): ReadVerdict;
}

/**
 * Puts event definitions together. Refuses with NP_CONFIG_INVALID what would break the order of an aggregate or be ambiguous: a type
 * defined twice in a version, a type under two aggregate types, an aggregate type on two topics, an old version that cannot be read
 * as the newest, and names out of range.
 */
export function createCatalogue<const Events extends readonly EventDefinition[]>(events: Events): Catalogue<Events> {
  const versions = new Map<string, Map<number, EventDefinition>>();
  const topics = new Map<string, string>();
  for (const event of events) {
    checkNames(event);
    checkTopic(event, topics);
    addVersion(event, versions);
  }
  for (const [type, known] of versions) checkUpcasts(type, known);
  const find = (eventType: string, eventVersion?: number): EventDefinition | undefined => {
    const known = versions.get(eventType);
    return known?.get(eventVersion ?? Math.max(...known.keys()));
  };
  return {
    events,
    topics: [...new Set(topics.values())],
    find,
    validate: ({ eventType, eventVersion, payload }) => {
      const definition = find(eventType, eventVersion);
      if (definition === undefined) throw unknownEvent(eventType, eventVersion, versions);
      const problem = problemOf(definition, payload, 'strict');
      if (problem === null) return definition;
      throw new NightporterError(
        'NP_EVENT_INVALID',
        `${eventType} version ${definition.version} does not fit its schema: ${problem.reason}.`,
        { cause: problem.cause },
      );
    },
    read: (envelope) => readEnvelope(envelope, versions.get(envelope.eventType)),
  };
}

function checkNames({ type, version, aggregateType, topic }: EventDefinition): void {
  const accepted = `1 to ${NAME_LENGTH_MAX} characters, a letter first, then letters, digits, dot, underscore, hyphen`;
  if (!isName(type)) throw invalid(`The event type ${shown(type)} is no name; accepted: ${accepted}.`);
  if (!isName(aggregateType))
    throw invalid(`The aggregate type ${shown(aggregateType)} of ${type} is no name; accepted: ${accepted}.`);
  if (!isTopic(topic)) {
    throw invalid(
      `The topic ${shown(topic)} of ${type} is no name; accepted: 1 to 127 letters, digits, underscores, hyphens.`,
    );
  }
  if (!Number.isSafeInteger(version) || version < 1) {
    throw invalid(`The version ${shown(version)} of ${type} is out of range; accepted: 1, 2, 3 …`);
  }
}

function checkTopic({ type, aggregateType, topic }: EventDefinition, topics: Map<string, string>): void {
  const known = topics.get(aggregateType);
  if (known !== undefined && known !== topic) {
    throw invalid(
      `${type} puts the aggregate type ${aggregateType} on the topic ${topic}, which is on ${known} already; one aggregate type has one topic, or its order is lost.`,
    );
  }
  topics.set(aggregateType, topic);
}

function addVersion(event: EventDefinition, versions: Map<string, Map<number, EventDefinition>>): void {
  const known = versions.get(event.type) ?? new Map<number, EventDefinition>();
  const other = [...known.values()].find(({ aggregateType }) => aggregateType !== event.aggregateType);
  if (other !== undefined) {
    throw invalid(
      `${event.type} is defined for the aggregate types ${other.aggregateType} and ${event.aggregateType}; one type has one.`,
    );
  }
  if (known.has(event.version)) throw invalid(`${event.type} version ${event.version} is defined twice.`);
  versions.set(event.type, known.set(event.version, event));
}

/** Every version but the first that is here has the one right before it, and is made from that. */
function checkUpcasts(type: string, known: Versions): void {
  const first = Math.min(...known.keys());
  for (const { version, upcast } of known.values()) {
    const previous = version - 1;
    if (version === first && upcast === undefined) continue;
    if (!known.has(previous)) {
      throw invalid(
        `${type} version ${version} needs version ${previous} in the catalogue, from which data is upcast.`,
      );
    }
    if (upcast === undefined) {
      throw invalid(
        `${type} version ${version} has no upcaster from version ${previous}; handlers could not read what is written already.`,
      );
    }
    if (upcast.from.type !== type || upcast.from.version !== previous) {
      throw invalid(
        `${type} version ${version} is upcast from ${upcast.from.type} version ${upcast.from.version}; accepted: ${type} version ${previous}.`,
      );
    }
  }
}

function unknownEvent(
  eventType: string,
  eventVersion: number | undefined,
  versions: ReadonlyMap<string, ReadonlyMap<number, EventDefinition>>,
): NightporterError {
  const known = versions.get(eventType);
  const message =
    known === undefined
      ? `The catalogue has no event type ${shown(eventType)}; it has ${[...versions.keys()].join(', ') || 'none'}.`
      : `The catalogue has no version ${shown(eventVersion)} of ${eventType}; it has ${[...known.keys()].join(', ')}.`;
  return new NightporterError('NP_EVENT_UNKNOWN', message);
}

function invalid(message: string): NightporterError {
  return new NightporterError('NP_CONFIG_INVALID', message);
}
