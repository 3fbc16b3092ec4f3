import type { EventEnvelope, JsonValue } from './envelope.js';
import type { EventDefinition } from './event-definition.js';
import { problemOf } from './judge.js';

export type ReadVerdict =
  | { readonly kind: 'event'; readonly envelope: EventEnvelope }
  /** A newer version than this catalogue has. */
  | { readonly kind: 'unsupported'; readonly reason: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** The versions of one event type. */
export type Versions = ReadonlyMap<number, EventDefinition>;

/**
 * Judges the data by the schema of the version in which it was written, and hands it on as the newest version has it. The envelope that
 * was given stays as it is: it is what the digest promises, and what is parked.
 */
export function readEnvelope(envelope: EventEnvelope, versions: Versions | undefined): ReadVerdict {
  if (versions === undefined) return { kind: 'event', envelope };
  const { eventType, eventVersion, data } = envelope;
  const newest = Math.max(...versions.keys());
  const definition = versions.get(eventVersion);
  if (definition === undefined) {
    const reason = `${eventType} version ${eventVersion} is not in the catalogue, whose latest is ${newest}`;
    return eventVersion > newest ? { kind: 'unsupported', reason } : { kind: 'invalid', reason };
  }
  const problem = problemOf(definition, data, 'tolerant');
  if (problem !== null) {
    return {
      kind: 'invalid',
      reason: `${eventType} version ${eventVersion} does not fit its schema: ${problem.reason}`,
    };
  }
  return eventVersion === newest ? { kind: 'event', envelope } : upcastTo(newest, envelope, versions);
}

/** Version by version, each result judged by its schema: a wrong upcaster is named here, not in a handler's stack. */
function upcastTo(newest: number, envelope: EventEnvelope, versions: Versions): ReadVerdict {
  let data: JsonValue = envelope.data;
  for (let version = envelope.eventVersion + 1; version <= newest; version += 1) {
    const step = upcastOnce(data, versions.get(version));
    if (step.kind === 'failed') {
      const reason = `${envelope.eventType} version ${envelope.eventVersion} could not be read as version ${version}: ${step.reason}`;
      return { kind: 'invalid', reason };
    }
    data = step.data;
  }
  return { kind: 'event', envelope: { ...envelope, eventVersion: newest, data } };
}

type Step = { readonly kind: 'data'; readonly data: JsonValue } | { readonly kind: 'failed'; readonly reason: string };

function upcastOnce(data: JsonValue, definition: EventDefinition | undefined): Step {
  if (definition?.upcast === undefined) return { kind: 'failed', reason: 'the catalogue has no upcaster to it' };
  try {
    // It fits the schema of the version before, by which it was just judged. A copy, since an upcaster that changes what it is given would change the event that is parked and digested.
    const upcast = definition.upcast.data(structuredClone(data) as never);
    const problem = problemOf(definition, upcast, 'tolerant');
    if (problem !== null) return { kind: 'failed', reason: problem.reason };
    return { kind: 'data', data: upcast as JsonValue };
  } catch (error) {
    return { kind: 'failed', reason: `the upcaster threw: ${error instanceof Error ? error.message : String(error)}` };
  }
}
