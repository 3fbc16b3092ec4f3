/**
 * How one JSON Schema differs from another in what it accepts.
 *
 * Within one version of an event both directions break somebody: a narrower schema refuses events that are written already, and a wider
 * one lets producers write what consumers of the release refuse. So the only change that passes is a new optional field, which readers of
 * the release tolerate. Anything else is a new version with an upcaster.
 */
import { canonicalJson } from './canonical-json.js';
import type { JsonValue } from './envelope.js';
import type { JsonSchema } from './released.js';

export interface SchemaChange {
  /** `payload.lines[].quantity` */
  readonly path: string;
  readonly change: string;
}

type Keywords = Readonly<Record<string, JsonValue>>;
/** A place, and the schema there before and now. */
interface Place {
  readonly path: string;
  readonly before: JsonSchema;
  readonly now: JsonSchema;
}

/** Say nothing about what is accepted. */
const REMARKS = new Set(['$schema', '$id', 'id', 'title', 'description', 'examples', 'default', 'deprecated', 'meta']);
/** A smaller value is narrower for the first, a larger one for the second. */
const UPPER_BOUNDS = new Set(['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']);
const LOWER_BOUNDS = new Set(['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']);
const OF_OBJECTS = new Set(['properties', 'required', 'additionalProperties']);
const SCHEMA_LISTS = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);

/** Every difference that breaks a reader, in the order of the schema. */
export function schemaChanges(before: JsonSchema, now: JsonSchema): readonly SchemaChange[] {
  return compare({ path: 'payload', before, now });
}

function compare({ path, before, now }: Place): readonly SchemaChange[] {
  if (canonicalJson(before) === canonicalJson(now)) return [];
  const old = keywordsOf(before);
  const current = keywordsOf(now);
  if (old === null || current === null) {
    return [{ path, change: before === false || now === true ? 'type widened' : 'type narrowed' }];
  }
  const changes = [...compareProperties(path, old, current)];
  for (const keyword of new Set([...Object.keys(old), ...Object.keys(current)])) {
    if (!REMARKS.has(keyword) && !OF_OBJECTS.has(keyword)) {
      changes.push(...compareKeyword(path, keyword, { old: old[keyword], current: current[keyword] }));
    }
  }
  return changes;
}

/** `true` accepts what `{}` accepts. */
function keywordsOf(schema: JsonSchema): Keywords | null {
  if (schema === true) return {};
  return schema === false ? null : schema;
}

function compareProperties(path: string, old: Keywords, current: Keywords): readonly SchemaChange[] {
  const [wasThere, isThere] = [recordOf(old['properties']), recordOf(current['properties'])];
  const [wasRequired, isRequired] = [listOf(old['required']), listOf(current['required'])];
  const changes: SchemaChange[] = [];
  for (const name of new Set([...Object.keys(wasThere), ...Object.keys(isThere)])) {
    const place = `${path}.${name}`;
    const [before, now] = [wasThere[name], isThere[name]];
    if (now === undefined) {
      changes.push({ path: place, change: 'field removed' });
      continue;
    }
    if (isRequired.includes(name) && !wasRequired.includes(name)) {
      changes.push({
        path: place,
        change: before === undefined ? 'field added that is required' : 'field made required',
      });
    } else if (before !== undefined && wasRequired.includes(name) && !isRequired.includes(name)) {
      changes.push({ path: place, change: 'field made optional, which readers of the release require' });
    }
    if (before !== undefined) changes.push(...compare({ path: place, before: schemaOf(before), now: schemaOf(now) }));
  }
  return [...changes, ...compareAdditional(path, old['additionalProperties'], current['additionalProperties'])];
}

/** Keys that a schema does not know are tolerated at read, so that open and closed objects read alike; a schema for them counts. */
function compareAdditional(
  path: string,
  old: JsonValue | undefined,
  current: JsonValue | undefined,
): readonly SchemaChange[] {
  const asSchema = (value: JsonValue | undefined): JsonSchema =>
    value === undefined || typeof value === 'boolean' ? true : schemaOf(value);
  return compare({ path: `${path}.*`, before: asSchema(old), now: asSchema(current) });
}

interface Values {
  readonly old: JsonValue | undefined;
  readonly current: JsonValue | undefined;
}

function compareKeyword(path: string, keyword: string, { old, current }: Values): readonly SchemaChange[] {
  if (canonicalJson(old ?? null) === canonicalJson(current ?? null)) return [];
  if (keyword === 'items' && old !== undefined && current !== undefined) {
    return compare({ path: `${path}[]`, before: schemaOf(old), now: schemaOf(current) });
  }
  if (keyword === '$defs') return compareDefinitions(recordOf(old), recordOf(current));
  const lists = [listOf(old), listOf(current)] as const;
  if (SCHEMA_LISTS.has(keyword) && lists[0].length === lists[1].length) {
    return lists[0].flatMap((one, index) =>
      compare({
        path: `${path}(${keyword} ${index + 1})`,
        before: schemaOf(one),
        now: schemaOf(lists[1][index] ?? null),
      }),
    );
  }
  const said = `${keyword} ${shownValue(old)} → ${shownValue(current)}`;
  return [{ path, change: `type ${directionOf(keyword, { old, current })} (${said})` }];
}

function compareDefinitions(old: Keywords, current: Keywords): readonly SchemaChange[] {
  // A definition that came or went is seen where it is referred to.
  return Object.entries(old).flatMap(([name, before]) => {
    const now = current[name];
    return now === undefined ? [] : compare({ path: name, before: schemaOf(before), now: schemaOf(now) });
  });
}

function directionOf(keyword: string, { old, current }: Values): 'narrowed' | 'widened' | 'changed' {
  if (old === undefined) return keyword === 'anyOf' || keyword === 'oneOf' ? 'changed' : 'narrowed';
  if (current === undefined) return keyword === 'anyOf' || keyword === 'oneOf' ? 'changed' : 'widened';
  if (typeof old === 'number' && typeof current === 'number') {
    if (UPPER_BOUNDS.has(keyword)) return current < old ? 'narrowed' : 'widened';
    if (LOWER_BOUNDS.has(keyword)) return current > old ? 'narrowed' : 'widened';
  }
  if (keyword === 'enum' || keyword === 'type' || keyword === 'anyOf') return directionOfSets(old, current);
  return 'changed';
}

function directionOfSets(old: JsonValue, current: JsonValue): 'narrowed' | 'widened' | 'changed' {
  const [was, is] = [old, current].map((value) => new Set(listOf(value, [value]).map((item) => canonicalJson(item))));
  if (was === undefined || is === undefined) return 'changed';
  if ([...is].every((item) => was.has(item))) return 'narrowed';
  return [...was].every((item) => is.has(item)) ? 'widened' : 'changed';
}

function shownValue(value: JsonValue | undefined): string {
  return value === undefined ? 'none' : JSON.stringify(value);
}

function recordOf(value: JsonValue | undefined): Keywords {
  return typeof value === 'object' && value !== null && !isList(value) ? value : {};
}

function listOf(value: JsonValue | undefined, otherwise: readonly JsonValue[] = []): readonly JsonValue[] {
  return isList(value) ? value : otherwise;
}

/** Array.isArray does not tell a readonly array from the rest of a union. */
function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function schemaOf(value: JsonValue): JsonSchema {
  return typeof value === 'boolean' ? value : recordOf(value);
}
