import { describe, expect, it } from 'vitest';
import { award, pointsFor, reverse, type Award } from './points.js';

const open: Award = { orderId: 'o1', customerId: 'c1', points: 0, state: 'open' };

describe('points', () => {
  it.each([
    [0, 0],
    [99, 0],
    [100, 1],
    [12_345, 123],
  ])('for %d minor units are %d', (amountMinor, points) => {
    expect(pointsFor(amountMinor)).toBe(points);
  });

  it('are awarded once', () => {
    expect(award(open, 500)).toEqual({ kind: 'change', points: 5, state: 'awarded' });
    expect(award({ ...open, points: 5, state: 'awarded' }, 500)).toEqual({ kind: 'nothing' });
    expect(award({ ...open, points: 5, state: 'reversed' }, 500)).toEqual({ kind: 'nothing' });
  });

  it('are taken back once, and only those that were awarded', () => {
    expect(reverse({ ...open, points: 5, state: 'awarded' })).toEqual({
      kind: 'change',
      points: -5,
      state: 'reversed',
    });
    expect(reverse({ ...open, points: 5, state: 'reversed' })).toEqual({ kind: 'nothing' });
    expect(reverse(open)).toEqual({ kind: 'nothing' });
  });
});
