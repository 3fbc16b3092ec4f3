import { aggregateIdentity, aggregateKey, isNightporterError, type AggregateIdentity } from '@nightporter/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EVENT_KEY_BYTES_MAX } from './limits.js';
import { assertEventKey, assertIdentity, defaultEventKey, isAggregateId, isName, isTopic } from './names.js';
import { utf8Bytes } from './text.js';

const order = (aggregateId: string): AggregateIdentity => ({ source: 'orders', aggregateType: 'order', aggregateId });

describe('names', () => {
  it.each(['a', 'OrderCreated', 'orders-api', 'a.b_c-9', 'x'.repeat(100)])('takes %j for a name', (value) => {
    expect(isName(value)).toBe(true);
  });

  it.each(['', '1a', '-a', 'a b', 'ä', 'a/b', 'a|b', 'x'.repeat(101), 'a\n'])(
    'does not take %j for a name',
    (value) => {
      expect(isName(value)).toBe(false);
    },
  );

  it.each([
    ['orders-events', true],
    ['T_1', true],
    ['x'.repeat(127), true],
    ['', false],
    ['a.b', false],
    ['x'.repeat(128), false],
  ])('judges the topic %j: %s', (value, accepted) => {
    expect(isTopic(value)).toBe(accepted);
  });
});

describe('an aggregate id', () => {
  it.each(['1', 'a b', 'a/b:c', 'x'.repeat(256), '😀', ' ', 'ключ', '%2F', '..', 'a|b'])('may be %j', (value) => {
    expect(isAggregateId(value)).toBe(true);
    assertIdentity(order(value));
    expect(aggregateIdentity(aggregateKey(order(value)))).toEqual(order(value));
  });

  it.each(['', 'x'.repeat(257), 'a\nb', '\0', '\u0085', '\ud83d', 'a\ude00b'])('may not be %j', (value) => {
    expect(isAggregateId(value)).toBe(false);
    expect(() => {
      assertIdentity(order(value));
    }).toThrow(/aggregateId is .*; accepted: 1 to 256 characters/);
  });

  it('is refused with NP_EVENT_INVALID where it is no string at all', () => {
    try {
      assertIdentity({ ...order('1'), aggregateId: 7 as unknown as string });
      expect.unreachable();
    } catch (error) {
      expect(isNightporterError(error, 'NP_EVENT_INVALID')).toBe(true);
    }
  });
});

describe('an event key', () => {
  it.each(['k', 'x'.repeat(63), '😀'.repeat(15), 'a b'])('may be %j', (value) => {
    expect(() => {
      assertEventKey(value);
    }).not.toThrow();
  });

  it.each(['', ' ', 'x'.repeat(64), '😀'.repeat(16), 'a\tb', '\ud83d'])('may not be %j', (value) => {
    expect(() => {
      assertEventKey(value);
    }).toThrow(/eventKey is .*; accepted: 1 to 63 bytes/);
  });

  it('is the key of the aggregate where that is short enough, and a hash where it is not', () => {
    expect(defaultEventKey(order('1'))).toBe('orders/order/1');
    expect(defaultEventKey(order('x'.repeat(50)))).toBe(`orders/order/${'x'.repeat(50)}`);
    expect(defaultEventKey(order('x'.repeat(51)))).toMatch(/^sha256:[\w-]{43}$/);
  });

  it('by default fits the broker for every identity, and differs for different ones', () => {
    const identity = fc.string({ unit: 'binary', minLength: 1, maxLength: 256 }).filter(isAggregateId).map(order);
    fc.assert(
      fc.property(identity, identity, (left, right) => {
        assertEventKey(defaultEventKey(left));
        expect(utf8Bytes(defaultEventKey(left))).toBeLessThanOrEqual(EVENT_KEY_BYTES_MAX);
        expect(defaultEventKey(left) === defaultEventKey(right)).toBe(left.aggregateId === right.aggregateId);
      }),
    );
  });
});
