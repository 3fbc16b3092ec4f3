import { NightporterError } from '@nightporter/protocol';
import type { JsonValue } from './envelope.js';
import { ENVELOPE_BYTES_CEILING, PAYLOAD_DEPTH_MAX } from './limits.js';
import { pathTo, type Place } from './place.js';
import { hasLoneSurrogate, kindOf, shown } from './text.js';

/** A value that is still to be checked, and where it stands. */
interface Item {
  readonly value: unknown;
  readonly place: Place;
}

interface Progress {
  readonly pending: Item[];
  /** Bytes that the payload takes at the least once encoded. */
  bytesAtLeast: number;
}

/**
 * Refuses whatever plain JSON, or MongoDB's BSON, would not carry exactly: a consumer reads what was emitted, or emit throws.
 *
 * Accepted are null, booleans, strings without a lone surrogate, finite numbers other than -0 and unsafe integers, arrays without
 * holes, and plain objects whose keys are free of `.`, NUL and lone surrogates, do not begin with `$`, and are neither `__proto__`
 * nor `_bsontype` (the driver takes an object with that key for one of its own types); nested at most {@link PAYLOAD_DEPTH_MAX} deep.
 *
 * @throws NP_PAYLOAD_NOT_JSON naming the path (`payload.lines[3].price`), what stands there, and what is accepted;
 * NP_EVENT_TOO_LARGE as soon as the payload cannot fit any limit, so that an endless one is not walked to its end.
 */
export function assertPayload(value: unknown): asserts value is JsonValue {
  const progress: Progress = {
    pending: [{ value, place: { parent: null, step: 'payload', depth: 0 } }],
    bytesAtLeast: 0,
  };
  for (let item = progress.pending.pop(); item !== undefined; item = progress.pending.pop()) check(item, progress);
}

function check({ value, place }: Item, progress: Progress): void {
  count(1, place, progress);
  switch (typeof value) {
    case 'boolean':
      return;
    case 'string':
      count(value.length, place, progress);
      if (hasLoneSurrogate(value)) {
        refuse(place, `a string with a lone surrogate, ${shown(value)}`, 'well-formed Unicode');
      }
      return;
    case 'number':
      checkNumber(value, place);
      return;
    case 'object':
      if (value === null) return;
      if (Array.isArray(value)) checkArray(value, place, progress);
      else checkObject(value, place, progress);
      return;
    case 'bigint':
      refuse(place, `a BigInt, ${String(value)}`, 'a number that is a safe integer, or a string of digits');
      break;
    case 'undefined':
      refuse(place, 'undefined', 'null, or no such key');
      break;
    case 'symbol':
    case 'function':
      refuse(place, kindOf(value), ACCEPTED_VALUES);
  }
}

function checkNumber(value: number, place: Place): void {
  if (!Number.isFinite(value)) refuse(place, String(value), 'a finite number');
  if (Object.is(value, -0)) refuse(place, '-0', '0, since JSON has no negative zero');
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    refuse(
      place,
      `the unsafe integer ${value}`,
      `integers of at most ±${Number.MAX_SAFE_INTEGER}, or a string of digits`,
    );
  }
}

function checkArray(values: readonly unknown[], place: Place, progress: Progress): void {
  if (!Array.isArray(Object.getPrototypeOf(values))) refuse(place, kindOf(values), 'a plain array');
  checkContainer(values, place);
  count(values.length, place, progress);
  for (let index = 0; index < values.length; index += 1) {
    const inner: Place = { parent: place, step: index, depth: place.depth + 1 };
    const property = Object.getOwnPropertyDescriptor(values, index);
    if (property === undefined) refuse(inner, 'a hole in an array', 'arrays without holes');
    progress.pending.push({ value: dataOf(property, inner), place: inner });
  }
  // Its indexes and `length`, and nothing else.
  if (Reflect.ownKeys(values).length !== values.length + 1)
    refuse(place, 'an array with named properties', 'a plain array');
}

function checkObject(object: object, place: Place, progress: Progress): void {
  if (!isPlain(object)) refuse(place, kindOf(object), ACCEPTED_VALUES);
  checkContainer(object, place);
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === 'symbol') refuse(place, `the symbol key ${String(key)}`, 'string keys');
    const inner: Place = { parent: place, step: key, depth: place.depth + 1 };
    count(key.length + 3, inner, progress);
    checkKey(key, inner);
    const property = Object.getOwnPropertyDescriptor(object, key);
    if (property === undefined) refuse(inner, 'a key that comes and goes', ACCEPTED_VALUES);
    if (property.enumerable !== true) refuse(inner, 'a hidden (non-enumerable) property', 'enumerable properties');
    progress.pending.push({ value: dataOf(property, inner), place: inner });
  }
}

function checkContainer(container: object, place: Place): void {
  if (place.depth >= PAYLOAD_DEPTH_MAX) {
    refuse(
      place,
      `a value nested deeper than ${PAYLOAD_DEPTH_MAX} levels`,
      `at most ${PAYLOAD_DEPTH_MAX} levels and no cycle`,
    );
  }
  // One of its own is looked at as any other property; a function is none of the accepted values.
  if ('toJSON' in container && !Object.hasOwn(container, 'toJSON')) {
    refuse(place, 'an object with an inherited toJSON', 'the plain value itself');
  }
}

function checkKey(key: string, place: Place): void {
  const accepted =
    'keys that do not begin with $, hold no dot, NUL or lone surrogate, and are not __proto__ or _bsontype';
  if (key.startsWith('$')) refuse(place, `the key ${shown(key)}, which begins with $`, accepted);
  if (key.includes('.')) refuse(place, `the key ${shown(key)}, which holds a dot`, accepted);
  if (key.includes('\0')) refuse(place, `the key ${shown(key)}, which holds NUL`, accepted);
  if (key === '__proto__' || key === '_bsontype') refuse(place, `the key ${shown(key)}`, accepted);
  if (hasLoneSurrogate(key)) refuse(place, `the key ${shown(key)}, which holds a lone surrogate`, accepted);
}

/** An object literal, one without a prototype, or an object literal of another realm (a test runner's, for instance). */
function isPlain(object: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype === null || prototype === Object.prototype) return true;
  return (
    typeof prototype === 'object' &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, 'isPrototypeOf') &&
    Object.hasOwn(prototype, 'hasOwnProperty')
  );
}

function dataOf(property: PropertyDescriptor, place: Place): unknown {
  if (property.get !== undefined || property.set !== undefined) refuse(place, 'a getter or setter', 'plain data');
  return property.value;
}

function count(bytes: number, place: Place, progress: Progress): void {
  progress.bytesAtLeast += bytes;
  if (progress.bytesAtLeast <= ENVELOPE_BYTES_CEILING) return;
  throw new NightporterError(
    'NP_EVENT_TOO_LARGE',
    `The payload is larger than ${ENVELOPE_BYTES_CEILING} bytes, reached at ${pathTo(place)}; accepted is an encoded envelope within the configured limit.`,
  );
}

const ACCEPTED_VALUES = 'null, booleans, finite numbers, strings, arrays and plain objects';

function refuse(place: Place, found: string, accepted: string): never {
  throw new NightporterError('NP_PAYLOAD_NOT_JSON', `${pathTo(place)} is ${found}; accepted: ${accepted}.`);
}
