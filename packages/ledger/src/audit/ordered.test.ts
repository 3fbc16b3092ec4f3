import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareStrings, inBatches, mergeSorted } from './ordered.js';

async function* from<Item>(items: readonly Item[], ended: () => void = () => undefined): AsyncGenerator<Item> {
  try {
    for (const item of items) yield await Promise.resolve(item);
  } finally {
    ended();
  }
}

async function all<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('merged streams', () => {
  it('bring what all sources have, in one order, those of earlier sources first', async () => {
    const sources = fc.array(fc.array(fc.nat(20), { maxLength: 20 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(sources, async (lists) => {
        const sorted = lists.map((list, source) => list.toSorted((a, b) => a - b).map((value) => ({ value, source })));
        const merged = await all(
          mergeSorted(
            sorted.map((list) => from(list)),
            (a, b) => a.value - b.value,
          ),
        );
        expect(merged).toEqual(sorted.flat().toSorted((a, b) => a.value - b.value || a.source - b.source));
      }),
    );
  });

  it('end their sources where nobody reads on', async () => {
    const ended: string[] = [];
    const sources = ['a', 'b'].map((name) => from([1, 2, 3], () => ended.push(name)));
    for await (const value of mergeSorted(sources, (a, b) => a - b)) if (value === 2) break;
    expect(ended).toEqual(['a', 'b']);
  });
});

it('batches hold so many, and the last one the rest', async () => {
  expect(await all(inBatches(from([1, 2, 3, 4, 5]), 2))).toEqual([[1, 2], [3, 4], [5]]);
});

it('strings are ordered as a server orders them', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (left, right) => {
      const byBytes = Buffer.compare(Buffer.from(left), Buffer.from(right));
      expect(Math.sign(compareStrings(left, right))).toBe(byBytes);
    }),
  );
  expect(compareStrings('\u{1f600}', '\u{ffee}')).toBeGreaterThan(0);
});
