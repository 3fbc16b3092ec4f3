import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fairShare, shareStep } from './fair-share.js';

const sharesOf = (shards: number, instances: readonly string[]): number[] =>
  instances.map((self) => fairShare({ shards, instances, self }));

describe('the fair share', () => {
  it.each([
    [4, ['a'], [4]],
    [4, ['a', 'b'], [2, 2]],
    [4, ['c', 'a', 'b'], [1, 2, 1]],
    [2, ['a', 'b', 'c'], [1, 1, 0]],
    [64, ['a', 'b', 'c'], [22, 21, 21]],
  ])('of %i shards over %j is %j', (shards, instances, shares) => {
    expect(sharesOf(shards, instances)).toEqual(shares);
  });

  it('counts the one who asks, whether or not it is listed', () => {
    expect(fairShare({ shards: 4, instances: ['b'], self: 'a' })).toBe(2);
    expect(fairShare({ shards: 4, instances: [], self: 'a' })).toBe(4);
  });

  const instances = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 70 });
  const shards = fc.integer({ min: 1, max: 64 });

  it('leaves no shard over and none twice, differs by one at most, and does not depend on the order of the list', () => {
    fc.assert(
      fc.property(shards, instances, (count, living) => {
        const shares = sharesOf(count, living);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBe(count);
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        expect(sharesOf(count, [...living].reverse()).reverse()).toEqual(shares);
      }),
    );
  });

  it('never grows for anybody when one joins', () => {
    fc.assert(
      fc.property(shards, instances, (count, living) => {
        const [, ...before] = living;
        for (const self of before) {
          const grown = fairShare({ shards: count, instances: living, self });
          expect(grown).toBeLessThanOrEqual(fairShare({ shards: count, instances: before, self }));
        }
      }),
    );
  });
});

/** Rounds in which each instance in turn takes what it may of what is free, or gives its surplus back. */
function settle(held: Map<string, number>, shards: number): number {
  const living = [...held.keys()];
  let moves = 0;
  for (const self of living) {
    const mine = held.get(self) ?? 0;
    const free = shards - [...held.values()].reduce((sum, count) => sum + count, 0);
    const step = shareStep({ share: fairShare({ shards, instances: living, self }), held: mine });
    const change = step.kind === 'take' ? Math.min(step.places, free) : step.kind === 'give-back' ? -step.surplus : 0;
    held.set(self, mine + change);
    moves += Math.abs(change);
  }
  return moves;
}

describe('the step towards the share', () => {
  it.each([
    [
      { share: 2, held: 0 },
      { kind: 'take', places: 2 },
    ],
    [{ share: 2, held: 2 }, { kind: 'keep' }],
    [
      { share: 1, held: 4 },
      { kind: 'give-back', surplus: 3 },
    ],
    [{ share: 0, held: 0 }, { kind: 'keep' }],
    [{ share: null, held: 0 }, { kind: 'keep' }],
    [{ share: null, held: 3 }, { kind: 'keep' }],
  ])('of %j is %j', (given, step) => {
    expect(shareStep(given)).toEqual(step);
  });

  it('leads from any distribution to one in which every shard is owned, in two rounds, and rests there', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat({ max: 10 }), { minLength: 1, maxLength: 8 }),
        fc.nat({ max: 20 }),
        (counts, free) => {
          const held = new Map(counts.map((count, index) => [`instance ${index}`, count]));
          const shards = counts.reduce((sum, count) => sum + count, 0) + free;
          settle(held, shards);
          settle(held, shards);
          expect([...held.values()].reduce((sum, count) => sum + count, 0)).toBe(shards);
          expect(settle(held, shards)).toBe(0);
        },
      ),
    );
  });
});
