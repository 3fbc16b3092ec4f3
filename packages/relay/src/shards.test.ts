import { ALL_SLOTS } from '@nightporter/protocol';
import { expect, it } from 'vitest';
import { shardsOf } from './options.js';

it('One shard is named as ever and has all slots', () => {
  expect(shardsOf(1)).toEqual([{ id: 'all', slots: ALL_SLOTS }]);
});

it('Every number of shards has each slot once, in ranges whose lengths differ by one at most, under ids of its own', () => {
  const ids: string[] = [];
  for (let count = 1; count <= 64; count += 1) {
    const shards = shardsOf(count);
    ids.push(...shards.map(({ id }) => id));
    expect(shards.flatMap(({ slots }) => slots)).toEqual(ALL_SLOTS);
    const lengths = shards.map(({ slots }) => slots.length);
    expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThanOrEqual(1);
  }
  expect(new Set(ids).size).toBe((64 * 65) / 2);
});

it('A number of shards that cannot be is refused', () => {
  for (const count of [0, 65, 1.5]) expect(() => shardsOf(count)).toThrow(/shards is .*; accepted: 1 to 64 shards/);
});
