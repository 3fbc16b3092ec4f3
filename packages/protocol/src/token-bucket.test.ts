import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TokenBucket, steadyRate } from './token-bucket.js';

describe('a token bucket', () => {
  test('lets its burst go at once, and then one for each interval', () => {
    const bucket = new TokenBucket({ perSecond: 10, burst: 2 });
    for (let index = 0; index < 2; index += 1) {
      expect(bucket.waitMs(0)).toBe(0);
      bucket.take();
    }
    expect(bucket.waitMs(0)).toBe(100);
    expect(bucket.waitMs(60)).toBe(40);
    expect(bucket.waitMs(100)).toBe(0);
    bucket.take();
    expect(bucket.waitMs(100)).toBe(100);
  });

  test('saves up no more than its burst', () => {
    const bucket = new TokenBucket(steadyRate(5));
    let taken = 0;
    expect(bucket.waitMs(0)).toBe(0);
    while (bucket.waitMs(3_600_000) === 0) {
      bucket.take();
      taken += 1;
    }
    expect(taken).toBe(1);
  });

  test('takes at most burst + t · rate in any time, and wastes less than a millisecond of each wait', () => {
    const rates = fc.record({ perSecond: fc.integer({ min: 1, max: 3_000 }), burst: fc.integer({ min: 1, max: 50 }) });
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 400 }), (limit, takes) => {
        const bucket = new TokenBucket(limit);
        let nowMs = 5;
        let waits = 0;
        for (let taken = 1; taken <= takes; taken += 1) {
          for (let waitMs = bucket.waitMs(nowMs); waitMs > 0; waitMs = bucket.waitMs(nowMs)) {
            nowMs += waitMs;
            waits += 1;
          }
          bucket.take();
          const allowed = limit.burst + ((nowMs - 5) * limit.perSecond) / 1_000;
          expect(taken).toBeLessThanOrEqual(allowed + 1e-6);
        }
        const atLeastMs = Math.max(0, ((takes - limit.burst) * 1_000) / limit.perSecond);
        expect(nowMs - 5).toBeLessThanOrEqual(atLeastMs + waits + 1);
      }),
    );
  });
});
