import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decideRetry, retryDelayMs, type RetryPolicy } from './retry-policy.js';

const none = (): number => 0;
const scheduled: RetryPolicy = {
  delays: { kind: 'schedule', delaysMs: [1_000, 5_000, 30_000, 300_000] },
  attemptsMax: 5,
};

test('a schedule gives one delay after each failed attempt, and the attempt that spends the limit is the last', () => {
  expect([1, 2, 3, 4, 5, 6].map((attempts) => decideRetry(scheduled, attempts, none))).toEqual([
    { kind: 'retry', delayMs: 1_000 },
    { kind: 'retry', delayMs: 5_000 },
    { kind: 'retry', delayMs: 30_000 },
    { kind: 'retry', delayMs: 300_000 },
    { kind: 'dead' },
    { kind: 'dead' },
  ]);
});

test('the last delay of a schedule repeats', () => {
  expect(retryDelayMs({ kind: 'schedule', delaysMs: [10, 20] }, 9, none)).toBe(20);
});

test('exponential delays grow up to their cap', () => {
  const delays = { kind: 'exponential', firstMs: 100, factor: 3, capMs: 1_000, jitter: 0 } as const;
  expect([1, 2, 3, 4].map((attempts) => retryDelayMs(delays, attempts, none))).toEqual([100, 300, 900, 1_000]);
});

test('jitter only lengthens a delay, and never beyond the cap', () => {
  fc.assert(
    fc.property(
      fc.record({
        firstMs: fc.integer({ min: 1, max: 10_000 }),
        factor: fc.double({ min: 1, max: 5, noNaN: true }),
        capMs: fc.integer({ min: 1, max: 1_000_000 }),
        jitter: fc.double({ min: 0, max: 1, noNaN: true }),
      }),
      fc.integer({ min: 1, max: 2_000 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (shape, attempts, chance) => {
        const delays = { kind: 'exponential', ...shape } as const;
        const plain = retryDelayMs({ ...delays, jitter: 0 }, attempts, none);
        const jittered = retryDelayMs(delays, attempts, () => chance);
        expect(jittered).toBeGreaterThanOrEqual(plain);
        expect(jittered).toBeLessThanOrEqual(delays.capMs);
      },
    ),
  );
});
