import { NightporterError } from '@nightporter/protocol';
import fc from 'fast-check';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { PAYLOAD_DEPTH_MAX } from './limits.js';
import { assertPayload } from './payload.js';

function refusal(value: unknown): NightporterError | null {
  try {
    assertPayload(value);
    return null;
  } catch (error) {
    if (error instanceof NightporterError) return error;
    throw error;
  }
}

function nested(levels: number, leaf: unknown): unknown {
  let value = leaf;
  for (let level = 0; level < levels; level += 1) value = level % 2 === 0 ? { inner: value } : [value];
  return value;
}

class Price {
  readonly minor = 1;
}

class ObjectId {
  readonly _bsontype = 'ObjectId';
}

class List extends Array<number> {}

const sparse: unknown[] = [1];
sparse[2] = 3;
const named = Object.assign([1, 2], { sum: 3 });
const cycle: Record<string, unknown> = {};
cycle['self'] = cycle;
const hidden = Object.defineProperty({}, 'secret', { value: 1, enumerable: false });

describe('a payload', () => {
  it.each<[string, unknown]>([
    ['null', null],
    ['an empty object', {}],
    ['an empty array', []],
    ['nested arrays', [[[]], [{}]]],
    ['emoji in keys and strings', { '😀 key': 'text 😀' }],
    ['an empty key', { '': 1 }],
    ['keys with spaces, slashes, dollars inside', { 'a b': 1, 'a/b': 2, a$b: 3 }],
    ['the key constructor', { constructor: 1, prototype: 2, hasOwnProperty: 3 }],
    ['control characters and NUL in a string', 'a\0b\u001f\u2028'],
    ['the largest safe integers', [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]],
    ['fractions and tiny numbers', [0.1, -2.5, 5e-324, 1.5e-7]],
    ['an object without a prototype', Object.assign(Object.create(null) as object, { a: 1 })],
    ['an object of another realm', runInNewContext('({ a: [1, { b: 2 }] })')],
    ['the deepest nesting', nested(PAYLOAD_DEPTH_MAX, 1)],
    ['one object twice', ((shared) => [shared, shared])({ a: 1 })],
  ])('may be %s', (_name, value) => {
    expect(refusal(value)).toBeNull();
  });

  it.each<[string, unknown, string, RegExp]>([
    ['undefined', undefined, 'payload', /is undefined/],
    ['an undefined property', { a: undefined }, 'payload.a', /is undefined; accepted: null, or no such key/],
    ['a Date', { at: new Date(0) }, 'payload.at', /class Date/],
    ['a BigInt', { lines: [{}, { price: 10n }] }, 'payload.lines[1].price', /a BigInt, 10/],
    ['NaN', { lines: [0, 1, 2, { price: Number.NaN }] }, 'payload.lines[3].price', /is NaN/],
    ['1e400', [JSON.parse('1e400')], 'payload[0]', /is Infinity/],
    ['-Infinity', [-Infinity], 'payload[0]', /is -Infinity/],
    ['-0', { total: -0 }, 'payload.total', /is -0/],
    ['2^53 + 1', { n: JSON.parse('9007199254740993') }, 'payload.n', /the unsafe integer 9007199254740992/],
    ['a huge integer', { n: 1e300 }, 'payload.n', /the unsafe integer 1e\+300/],
    ['a function', { run: () => 1 }, 'payload.run', /a function/],
    ['a symbol', { mark: Symbol('x') }, 'payload.mark', /a symbol/],
    ['a symbol key', { [Symbol('x')]: 1 }, 'payload', /the symbol key Symbol\(x\)/],
    ['a hole', sparse, 'payload[1]', /a hole in an array/],
    ['an array of four thousand million holes', new Array(4_000_000_000), 'payload', /larger than/],
    ['an array with named properties', named, 'payload', /named properties/],
    ['a subclass of Array', List.from([1]), 'payload', /a plain array/],
    ['a class instance', { price: new Price() }, 'payload.price', /class Price/],
    ['a driver value', { id: new ObjectId() }, 'payload.id', /class ObjectId/],
    ['a Map', { all: new Map() }, 'payload.all', /class Map/],
    ['a boxed number', { n: Object(1) as unknown }, 'payload.n', /class Number/],
    ['a typed array', { bytes: new Uint8Array(2) }, 'payload.bytes', /class Uint8Array/],
    ['a key that the driver takes for a type', { id: { _bsontype: 'Long' } }, 'payload.id._bsontype', /"_bsontype"/],
    ['an object with toJSON', { price: { toJSON: () => 1 } }, 'payload.price.toJSON', /a function/],
    ['an array with toJSON', Object.assign([1], { toJSON: () => 1 }), 'payload', /named properties/],
    ['an inherited object', Object.create({ a: 1 }), 'payload', /an object of class/],
    ['a getter', Object.defineProperty({}, 'a', { get: () => 1, enumerable: true }), 'payload.a', /a getter/],
    ['a hidden property', hidden, 'payload.secret', /hidden/],
    ['the key __proto__', JSON.parse('{"a":{"__proto__":1}}'), 'payload.a.__proto__', /the key "__proto__"/],
    ['a key with $', { $set: { a: 1 } }, 'payload["$set"]', /begins with \$/],
    ['a key with a dot', { 'a.b': 1 }, 'payload["a.b"]', /holds a dot/],
    ['a key with NUL', { 'a\0b': 1 }, 'payload["a\\u0000b"]', /holds NUL/],
    ['a key with a lone surrogate', { 'a\ud800': 1 }, 'payload["a\\ud800"]', /lone surrogate/],
    ['a lone surrogate', { a: ['\ude00x'] }, 'payload.a[0]', /lone surrogate/],
    ['one level too many', nested(PAYLOAD_DEPTH_MAX + 1, 1), 'payload', /nested deeper than 64 levels/],
    ['300 levels', nested(300, 1), 'payload', /nested deeper than 64 levels/],
    ['a cycle', cycle, 'payload', /nested deeper than 64 levels/],
  ])('may not be %s, and the error names the place', (_name, value, path, message) => {
    const error = refusal(value);
    expect(error?.message).toMatch(message);
    expect(error?.message).toContain(path);
    expect(error?.code).toBe(message.source.includes('larger') ? 'NP_EVENT_TOO_LARGE' : 'NP_PAYLOAD_NOT_JSON');
  });

  it('may have a key named toJSON, but not inherit one', () => {
    expect(refusal({ toJSON: 'text' })).toBeNull();
    Object.defineProperty(Object.prototype, 'toJSON', { value: () => 1, configurable: true });
    try {
      expect(refusal({ a: 1 })?.message).toMatch(/inherited toJSON/);
    } finally {
      Reflect.deleteProperty(Object.prototype, 'toJSON');
    }
  });

  it('is refused as too large before it is walked to its end, however often it repeats itself', () => {
    let value: unknown = 'x';
    for (let level = 0; level < 40; level += 1) value = [value, value];
    const startedAtMs = performance.now();
    expect(refusal(value)?.code).toBe('NP_EVENT_TOO_LARGE');
    expect(refusal(new Array(50).fill('x'.repeat(100_000)))?.code).toBe('NP_EVENT_TOO_LARGE');
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  });

  it('is identical after JSON, or refused', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withNullPrototype: true,
      withObjectString: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
      stringUnit: 'binary',
    });
    let accepted = 0;
    fc.assert(
      fc.property(anything, (value) => {
        if (refusal(value) !== null) return;
        accepted += 1;
        const copy: unknown = JSON.parse(JSON.stringify(value));
        expect(fc.stringify(copy)).toBe(fc.stringify(withPlainPrototypes(value)));
      }),
      { numRuns: 2_000 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  it('accepts every JSON value that has none of the refused parts', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!/[$.]|_bsontype|__proto__|\\u/.test(text));
        fc.pre(!some(value, (leaf) => Object.is(leaf, -0) || (Number.isInteger(leaf) && !Number.isSafeInteger(leaf))));
        expect(refusal(value)).toBeNull();
      }),
    );
  });
});

/** JSON gives every object the ordinary prototype. */
function withPlainPrototypes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withPlainPrototypes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withPlainPrototypes(inner)]));
}

function some(value: unknown, holds: (leaf: unknown) => boolean): boolean {
  return typeof value === 'object' && value !== null
    ? Object.values(value).some((inner) => some(inner, holds))
    : holds(value);
}
