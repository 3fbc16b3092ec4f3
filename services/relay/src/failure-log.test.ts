import { systemClock } from '@nightporter/runtime';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FailureLog } from './failure-log.js';

let lines: string[];
let log: FailureLog<string>;

beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  log = new FailureLog<string>(systemClock, {
    began: (details) => lines.push(`began ${details}`),
    goesOn: (details, tally) => lines.push(`goes on ${details} ${JSON.stringify(tally)}`),
    ended: (details, tally, isProven) => lines.push(`ended ${details} ${tally.failuresInAll} ${String(isProven)}`),
  });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('failures that repeat', () => {
  it('are told at once, then summed up now and then, and once when they are over', async () => {
    for (let failure = 0; failure < 1_200; failure += 1) {
      log.failed('orders', `down ${failure}`);
      await vi.advanceTimersByTimeAsync(10);
    }
    for (let success = 0; success < 3; success += 1) log.succeeded('orders');
    await vi.advanceTimersByTimeAsync(60_000);
    expect(lines).toEqual([
      'began down 0',
      'goes on down 999 {"failures":999,"failuresInAll":1000,"forMs":10000}',
      'ended down 1199 1200 true',
    ]);
  });

  it('are told for each kind', () => {
    log.failed('orders', 'orders');
    log.failed('inventory', 'inventory');
    log.failed('orders', 'orders');
    expect(lines).toEqual(['began orders', 'began inventory']);
  });

  it('are not over with a success that another failure follows', async () => {
    for (let second = 0; second < 9; second += 1) {
      log.failed('orders', 'now and then');
      log.succeeded('orders');
      await vi.advanceTimersByTimeAsync(500);
      log.failed('orders', 'now and then');
      await vi.advanceTimersByTimeAsync(500);
    }
    expect(lines).toEqual(['began now and then']);
  });

  it('are over when none comes for an interval, proven or not', async () => {
    log.failed('orders', 'once');
    await vi.advanceTimersByTimeAsync(10_000);
    log.failed('orders', 'again');
    expect(lines).toEqual(['began once', 'ended once 1 false', 'began again']);
  });

  it('are told no more once forgotten', async () => {
    log.failed('orders', 'once');
    log.failed('orders', 'once');
    log.succeeded('orders');
    log.forgetAll();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(lines).toEqual(['began once']);
  });

  it('of too many kinds are told together', () => {
    for (let kind = 0; kind < 300; kind += 1) log.failed(`topic-${kind}`, `${kind}`);
    expect(lines).toHaveLength(201);
  });
});
