import { expect, it } from 'vitest';
import { verdictOn } from './warehouse-goal.js';

it.each([
  [10_000, 'reached'],
  [10_001, 'missed'],
  [Number.NaN, 'missed'],
] as const)('A p99 of %d ms from commit to queryable has %s the goal', (p99Ms, verdict) => {
  expect(verdictOn(p99Ms)).toBe(verdict);
});
