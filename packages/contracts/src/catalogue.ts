import { NightporterError } from '@nightporter/protocol';
import type { z } from 'zod';
import type { EventEnvelope, JsonValue } from './envelope.js';
import { NAME_LENGTH_MAX } from './limits.js';
import { isName, isTopic } from './names.js';
import { shown } from './text.js';

/** One event type in one version. */
export interface EventDefinition<Type extends string = string, Schema extends z.ZodType = z.ZodType> {
  /** Past tense, `OrderCreated`. */
  readonly type: Type;
  /** 1, 2, 3 …; raised when an old consumer could not read the new data. */
  readonly version: number;
  readonly aggregateType: string;
  /** All events of an aggregate type travel on one FIFO topic. */
  readonly topic: string;
  /**
   * What the data must be. At emit it only judges: the payload is stored as it was given, so defaults and transformations do not
   * change it. At read, keys that the schema does not know are tolerated, so that a producer may add optional ones.
   */
  readonly schema: Schema;
}

/** The data of an event definition, as a handler may type it. */
export type EventData<Definition extends EventDefinition> = z.input<Definition['schema']>;

export type ReadVerdict =
  | { readonly kind: 'event'; readonly envelope: EventEnvelope }
  /** A newer version than this catalogue has. */
  | { readonly kind: 'unsupported'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string };

export interface Catalogue {
  readonly events: readonly EventDefinition[];
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
   * Judges an original event before its handler sees it (a tombstone has no data to judge). A type that is not here passes: a group
   * without a handler for it settles it as ignored.
   */
  read(envelope: EventEnvelope): ReadVerdict;
}

/** Declares an event; `createCatalogue` checks it. */
export function defineEvent<const Type extends string, Schema extends z.ZodType>(
  definition: EventDefinition<Type, Schema>,
): EventDefinition<Type, Schema> {
  return definition;
}

/**
 * Puts event definitions together. Refuses with NP_CONFIG_INVALID what would break the order of an aggregate or be ambiguous: a type
 * defined twice in a version, a type under two aggregate types, an aggregate type on two topics, and names out of range.
 */
export function createCatalogue(events: readonly EventDefinition[]): Catalogue {
  const versions = new Map<string, Map<number, EventDefinition>>();
  const topics = new Map<string, string>();
  for (const event of events) {
    checkNames(event);
    checkTopic(event, topics);
    addVersion(event, versions);
  }
  const find = (eventType: string, eventVersion?: number): EventDefinition | undefined => {
    const known = versions.get(eventType);
    return known?.get(eventVersion ?? Math.max(...known.keys()));
  };
  return {
    events: [...events],
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
    read: (envelope) => read(envelope, find),
  };
}

function read(envelope: EventEnvelope, find: Catalogue['find']): ReadVerdict {
  const { eventType, eventVersion } = envelope;
  const latest = find(eventType);
  if (latest === undefined) return { kind: 'event', envelope };
  const definition = find(eventType, eventVersion);
  if (definition === undefined) {
    const reason = `${eventType} version ${eventVersion} is not in the catalogue, whose latest is ${latest.version}`;
    return eventVersion > latest.version ? { kind: 'unsupported', reason } : { kind: 'invalid', reason };
  }
  const problem = problemOf(definition, envelope.data, 'tolerant');
  if (problem !== null) {
    return {
      kind: 'invalid',
      reason: `${eventType} version ${eventVersion} does not fit its schema: ${problem.reason}`,
    };
  }
  return { kind: 'event', envelope: upcast(envelope) };
}

/** The place where definitions of later versions will turn old data into new. Until then an event is read in its own version. */
function upcast(envelope: EventEnvelope): EventEnvelope {
  return envelope;
}

function problemOf(
  definition: EventDefinition,
  data: JsonValue,
  unknownKeys: 'strict' | 'tolerant',
): { readonly reason: string; readonly cause: unknown } | null {
  try {
    const result = definition.schema.safeParse(data);
    if (result.success) return null;
    const issues = result.error.issues.filter(({ code }) => unknownKeys === 'strict' || code !== 'unrecognized_keys');
    if (issues.length === 0) return null;
    return { reason: issues.slice(0, ISSUES_SHOWN).map(describe).join('; '), cause: result.error };
  } catch (cause) {
    // A refinement that throws, or an asynchronous one, which cannot be awaited inside a decision.
    return { reason: `the schema itself failed: ${cause instanceof Error ? cause.message : String(cause)}`, cause };
  }
}

const ISSUES_SHOWN = 5;

function describe(issue: z.core.$ZodIssue): string {
  const steps = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`));
  return `payload${steps.join('')}: ${issue.message}`;
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
