import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holesOf } from './holes.js';

describe('what is missing of an aggregate', () => {
  it.each<[readonly number[], number, object]>([
    [[1, 2, 3], 3, { holes: [], present: 3, above: null }],
    [[], 0, { holes: [], present: 0, above: null }],
    [[], 2, { holes: [{ from: 1, to: 2 }], present: 0, above: null }],
    [[3, 4], 4, { holes: [{ from: 1, to: 2 }], present: 2, above: null }],
    [
      [1, 4],
      5,
      {
        holes: [
          { from: 2, to: 3 },
          { from: 5, to: 5 },
        ],
        present: 2,
        above: null,
      },
    ],
    [[1, 1, 2, 2], 2, { holes: [], present: 2, above: null }],
    [[1, 2, 7], 2, { holes: [], present: 2, above: 7 }],
  ])('of %j up to %i', async (versions, head, expected) => {
    expect(await holesOf(versions, head)).toEqual(expected);
  });

  it('and what is there are the versions up to the head, whatever is there', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 20 })),
        fc.integer({ min: 0, max: 20 }),
        async (some, head) => {
          const { holes, present } = await holesOf(
            [...some].sort((a, b) => a - b),
            head,
          );
          const missing = holes.flatMap(({ from, to }) =>
            Array.from({ length: to - from + 1 }, (_, index) => from + index),
          );
          const there = new Set(some.filter((version) => version <= head));
          expect(present).toBe(there.size);
          expect(missing).toEqual(
            Array.from({ length: head }, (_, index) => index + 1).filter((version) => !there.has(version)),
          );
        },
      ),
    );
  });
});
