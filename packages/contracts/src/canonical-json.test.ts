import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.js';
import type { JsonValue } from './envelope.js';

/** The definition, written the obvious way. */
function reference(value: JsonValue): string {
  if (Array.isArray(value)) return `[${(value as JsonValue[]).map(reference).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value as Record<string, JsonValue>)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, inner]) => `${JSON.stringify(key)}:${reference(inner)}`);
  return `{${members.join(',')}}`;
}

/** The same value with the keys of every object turned round. */
function reversed(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as JsonValue[]).map(reversed);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value as Record<string, JsonValue>)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}

describe('canonical JSON', () => {
  it.each<[JsonValue, string]>([
    [null, 'null'],
    [[], '[]'],
    [{}, '{}'],
    [[56.0, { d: true, 10: null, 1: [] }], '[56,{"1":[],"10":null,"d":true}]'],
    [[JSON.parse('333333333.33333329') as number, 1e30, 4.5, 2e-3, 1e-27], '[333333333.3333333,1e+30,4.5,0.002,1e-27]'],
    ['€$\u000f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'],
    [-0, '0'],
  ])('writes %j as %s', (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  it('sorts keys by their UTF-16 code units, as RFC 8785 shows', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
    const order = [...canonicalJson(value).matchAll(/:(\d)/g)].map(([, digit]) => Number(digit));
    expect(order).toEqual([2, 4, 6, 7, 1, 5, 3]);
  });

  it('is what the definition says, whatever the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(value as JsonValue)).toBe(reference(value as JsonValue));
      }),
    );
  });

  it('does not depend on the order in which keys were written', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(canonicalJson(reversed(value as JsonValue))).toBe(canonicalJson(value as JsonValue));
      }),
    );
  });

  it('is JSON again, and of the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value as JsonValue))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('writes a body nested a hundred thousand levels deep without overflowing the stack', () => {
    const depth = 100_000;
    const value = JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as JsonValue;
    expect(canonicalJson(value)).toHaveLength(2 * depth);
  });

  it('writes a number that JSON cannot carry as no JSON value, so that no digest over it matches', () => {
    expect(canonicalJson(JSON.parse('[1e400]') as JsonValue)).toBe('[Infinity]');
  });

  it('keeps an own key named __proto__', () => {
    expect(canonicalJson(JSON.parse('{"__proto__":{"a":1}}') as JsonValue)).toBe('{"__proto__":{"a":1}}');
  });
});
