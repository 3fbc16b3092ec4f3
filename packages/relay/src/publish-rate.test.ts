import { describe, expect, it } from 'vitest';
import { PublishRate, ratePerSecond } from './publish-rate.js';

describe('a rate', () => {
  it.each<[string, readonly (readonly [number, number])[], number, number, number]>([
    ['is 0 where nothing happened', [], 0, 60_000, 0],
    [
      'is steady over the whole window',
      Array.from({ length: 20 }, (_, second) => [second, 50] as const),
      0,
      20_500,
      50,
    ],
    ['leaves the second out that is not over', [[20, 999]], 0, 20_500, 0],
    ['falls while nothing comes', [[10, 100]], 0, 15_000, 10],
    ['forgets what is older than the window', [[3, 100]], 0, 20_000, 0],
    [
      'is taken over the time that there has been',
      [
        [0, 30],
        [1, 50],
      ],
      0,
      2_000,
      40,
    ],
    ['is 0 before the first second is over', [[0, 30]], 0, 900, 0],
  ])('%s', (_name, counts, sinceMs, nowMs, expected) => {
    expect(ratePerSecond(new Map(counts), { sinceMs, nowMs })).toBe(expected);
  });

  it('is counted in little memory, however long it goes on', () => {
    const rate = new PublishRate();
    expect(rate.perSecond(0)).toBe(0);
    for (let nowMs = 0; nowMs < 100_000; nowMs += 100) rate.add(nowMs);
    expect(rate.perSecond(100_000)).toBe(10);
  });
});
