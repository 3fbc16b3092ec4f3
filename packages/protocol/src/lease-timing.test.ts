import { expect, test } from 'vitest';
import { leaseDeadline, renewEveryMs } from './lease-timing.js';

test('a lease is acted on for less than it lasts, counted from the request', () => {
  expect(leaseDeadline({ requestedAtMs: 1_000, leaseMs: 15_000 })).toBe(14_500);
  expect(leaseDeadline({ requestedAtMs: 0, leaseMs: 1 })).toBe(0);
});

test('two renewals may fail before the deadline', () => {
  for (const leaseMs of [3, 1_000, 4_000, 15_000]) {
    expect(2 * renewEveryMs(leaseMs)).toBeLessThanOrEqual(leaseDeadline({ requestedAtMs: 0, leaseMs }));
  }
});
