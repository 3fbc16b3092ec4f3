import { NightporterError } from '@nightporter/protocol';
import { z } from 'zod';
import type { Catalogue } from './catalogue.js';
import type { JsonValue } from './envelope.js';
import type { EventDefinition } from './event-definition.js';

/** A JSON Schema, or `true` and `false`. */
export type JsonSchema = boolean | { readonly [keyword: string]: JsonValue };

export interface ReleasedEvent {
  readonly type: string;
  readonly version: number;
  readonly aggregateType: string;
  readonly topic: string;
  readonly schema: JsonSchema;
}

/** What a release promised of its events: written to a file at the release, and compared with every later catalogue. */
export interface ReleasedCatalogue {
  readonly release: string;
  readonly events: readonly ReleasedEvent[];
}

/** The catalogue as a release records it, in the order of types and versions, so that two releases are easily compared by eye. */
export function releasedCatalogue(release: string, { events }: Pick<Catalogue, 'events'>): ReleasedCatalogue {
  const byName = (one: EventDefinition, other: EventDefinition): number =>
    one.type === other.type ? one.version - other.version : one.type < other.type ? -1 : 1;
  return { release, events: [...events].sort(byName).map(releasedEvent) };
}

export function releasedEvent({ type, version, aggregateType, topic, schema }: EventDefinition): ReleasedEvent {
  return { type, version, aggregateType, topic, schema: jsonSchemaOf(schema) };
}

/** What JSON Schema cannot say (refinements, and types that are no JSON) is left out of it, and so is not compared. */
function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const keywords = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  delete keywords.$schema;
  return JSON.parse(JSON.stringify(keywords)) as JsonSchema;
}

const releasedShape = z.object({
  release: z.string().min(1),
  events: z.array(
    z.object({
      type: z.string(),
      version: z.int().min(1),
      aggregateType: z.string(),
      topic: z.string(),
      schema: z.union([z.boolean(), z.record(z.string(), z.json())]),
    }),
  ),
});

/** Reads the text of a released file. `place` names it in the error, NP_CONFIG_INVALID. */
export function parseReleased(text: string, place: string): ReleasedCatalogue {
  const parsed = releasedShape.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ');
  throw new NightporterError('NP_CONFIG_INVALID', `${place} is no released catalogue: ${problems}.`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
