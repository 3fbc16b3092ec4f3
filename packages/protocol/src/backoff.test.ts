import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffMs } from './backoff.js';

const backoff = { firstMs: 50, maxMs: 5_000 };

test('waits double with every failure, up to their ceiling', () => {
  const waits = [1, 2, 3, 7, 8, 60].map((failures) => backoffMs(backoff, failures, () => 1));
  expect(waits).toEqual([50, 100, 200, 3_200, 5_000, 5_000]);
});

test('a wait is spread over half of its length, at the ceiling too', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 2_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, drawn) => {
        const full = backoffMs(backoff, failures, () => 1);
        const wait = backoffMs(backoff, failures, () => drawn);
        expect(wait).toBeGreaterThanOrEqual(full / 2);
        expect(wait).toBeLessThanOrEqual(full);
        expect(Number.isInteger(wait)).toBe(true);
      },
    ),
  );
});
