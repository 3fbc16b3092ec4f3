import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  beginsBatch,
  heldAmong,
  highestLimitMs,
  limitOf,
  mayGo,
  type OldRow,
  type Rule,
  type Standing,
} from './policy.js';

const rule: Rule = { nowMs: 10_000, afterMs: 1_000, marginMs: 100, forced: false };
const groups: readonly Standing[] = [
  { group: 'ahead', topics: ['orders', 'stock'], watermarkMs: 9_900 },
  { group: 'behind', topics: ['orders'], watermarkMs: 5_000 },
];
const row = (topic: string, publishedMs: number, bytes = 1): OldRow => ({
  _id: `${topic} ${publishedMs}`,
  topic,
  publishedAt: new Date(publishedMs),
  bytes,
});

describe('what retention may take', () => {
  it('is old enough where every group of the topic is past it', () => {
    expect(limitOf('stock', groups, rule)).toEqual({ kind: 'age', beforeMs: 9_000 });
    expect(mayGo(row('stock', 8_999), groups, rule)).toBe(true);
    expect(mayGo(row('stock', 9_000), groups, rule)).toBe(false);
  });

  it('lies below the lowest watermark of the topic’s groups, by the margin that their sweeps read again', () => {
    expect(limitOf('orders', groups, rule)).toEqual({
      kind: 'watermark',
      beforeMs: 4_900,
      group: 'behind',
      watermarkMs: 5_000,
    });
    expect(mayGo(row('orders', 4_899), groups, rule)).toBe(true);
    expect(mayGo(row('orders', 4_900), groups, rule)).toBe(false);
  });

  it('is nothing where no group is registered for the topic', () => {
    expect(limitOf('unread', groups, rule).kind).toBe('no-group');
    expect(mayGo(row('unread', 1), groups, rule)).toBe(false);
    expect(mayGo(row('orders', 1), [], rule)).toBe(false);
    expect(highestLimitMs([], rule)).toBe(Number.NEGATIVE_INFINITY);
  });

  it('is whatever is old enough when it is forced', () => {
    const forced = { ...rule, forced: true };
    expect(mayGo(row('orders', 8_999), groups, forced)).toBe(true);
    expect(mayGo(row('unread', 8_999), [], forced)).toBe(true);
    expect(mayGo(row('orders', 9_000), groups, forced)).toBe(false);
  });

  it('is never younger than the age, never at or above any watermark of its topic, and never above the highest limit', () => {
    const standing = fc.record({
      group: fc.constantFrom('a', 'b', 'c'),
      topics: fc.subarray(['orders', 'stock', 'points'], { minLength: 1 }),
      watermarkMs: fc.integer({ min: 0, max: 12_000 }),
    });
    fc.assert(
      fc.property(
        fc.array(standing, { maxLength: 5 }),
        fc.constantFrom('orders', 'stock', 'points'),
        fc.integer({ min: 0, max: 12_000 }),
        (standings, topic, publishedMs) => {
          const goes = mayGo(row(topic, publishedMs), standings, rule);
          const readers = standings.filter(({ topics }) => topics.includes(topic));
          const expected =
            publishedMs < 9_000 &&
            readers.length > 0 &&
            readers.every(({ watermarkMs }) => publishedMs < watermarkMs - rule.marginMs);
          expect(goes).toBe(expected);
          if (goes) expect(publishedMs).toBeLessThan(highestLimitMs(standings, rule));
        },
      ),
    );
  });
});

describe('a batch', () => {
  const batch = (...rows: OldRow[]) => ({ rows, bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0) });
  const limits = { rowsMax: 3, bytesMax: 100, bucketOf: (at: Date) => String(Math.floor(at.getTime() / 1_000)) };

  it('ends with its rows, its bytes or its bucket', () => {
    expect(beginsBatch(batch(), row('t', 1, 1_000), limits)).toBe(false);
    expect(beginsBatch(batch(row('t', 1), row('t', 2)), row('t', 3), limits)).toBe(false);
    expect(beginsBatch(batch(row('t', 1), row('t', 2), row('t', 3)), row('t', 4), limits)).toBe(true);
    expect(beginsBatch(batch(row('t', 1, 60)), row('t', 2, 40), limits)).toBe(false);
    expect(beginsBatch(batch(row('t', 1, 60)), row('t', 2, 41), limits)).toBe(true);
    expect(beginsBatch(batch(row('t', 999)), row('t', 1_000), limits)).toBe(true);
  });
});

describe('what is held', () => {
  it('is told once for each topic, with the group and its watermark', () => {
    const rows = [
      row('orders', 100),
      row('unread', 200),
      row('orders', 6_000),
      row('orders', 7_000),
      row('stock', 8_000),
    ];
    expect(heldAmong(rows, groups, rule)).toEqual([
      { topic: 'unread', because: { kind: 'no-group' }, oldestMs: 200 },
      { topic: 'orders', because: { kind: 'watermark', group: 'behind', watermarkMs: 5_000 }, oldestMs: 6_000 },
    ]);
  });
});
