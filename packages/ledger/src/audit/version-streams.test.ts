import fc from 'fast-check';
import { expect, it } from 'vitest';
import { withVersions } from './version-streams.js';

it('runs of versions are merged whatever their order, without a hole where they touch', () => {
  expect(withVersions([{ from: 2, to: 4 }], [9, 5, 1])).toEqual([
    { from: 1, to: 5 },
    { from: 9, to: 9 },
  ]);
  const versions = fc.uniqueArray(fc.integer({ min: 1, max: 30 }));
  fc.assert(
    fc.property(versions, versions, (some, others) => {
      const runs = withVersions(withVersions([], some), others);
      const listed = runs.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, index) => from + index));
      expect(listed).toEqual([...new Set([...some, ...others])].toSorted((a, b) => a - b));
      for (const [index, { from }] of runs.entries()) expect(from).toBeGreaterThan((runs[index - 1]?.to ?? -1) + 1);
    }),
  );
});
