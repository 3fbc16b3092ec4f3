import type { ConsumerEvent } from '@nightporter/consumer';
import { createLogger, systemClock } from '@nightporter/runtime';
import { beforeEach, describe, expect, it } from 'vitest';
import { createConsumerObserver } from './observer.js';
import { createSweepHealth, type SweepHealth } from './sweep-health.js';

const SWEEP_EVERY_MS = 10_000;
const FAILED: ConsumerEvent = { kind: 'ledger-unavailable', operation: 'sweep', error: new Error('away') };

let nowMs: number;
let health: SweepHealth;

beforeEach(() => {
  nowMs = 0;
  health = createSweepHealth({ now: () => nowMs }, { sweepEveryMs: SWEEP_EVERY_MS });
});

/** The same in every round, for so long; the reasons that were given meanwhile. */
function hear(event: ConsumerEvent, { everyMs, forMs }: { everyMs: number; forMs: number }): (string | null)[] {
  const reasons: (string | null)[] = [];
  for (const end = nowMs + forMs; nowMs <= end; nowMs += everyMs) {
    health.heard(event);
    reasons.push(health.reason());
  }
  nowMs -= everyMs;
  return reasons;
}

describe('a worker whose sweep of the ledger fails', () => {
  it('is not ready once each round has failed for two minutes, and says since when', () => {
    const reasons = hear(FAILED, { everyMs: SWEEP_EVERY_MS, forMs: 120_000 });
    expect(reasons.slice(0, -1).every((reason) => reason === null)).toBe(true);
    expect(reasons.at(-1)).toBe('the ledger sweep has failed for 120 s: what the broker loses is not found meanwhile');
  });

  it('is not ready where the group is not registered, likewise', () => {
    const reasons = hear({ kind: 'unregistered' }, { everyMs: SWEEP_EVERY_MS, forMs: 130_000 });
    expect(reasons.at(-1)).toContain('the group has not been registered with a producer for 130 s');
  });

  it('does not flap between rounds, also where each takes as long as the driver waits', () => {
    hear(FAILED, { everyMs: 40_000, forMs: 160_000 });
    for (let waited = 0; waited < 40_000; waited += 1_000) {
      expect(health.reason()).not.toBeNull();
      nowMs += 1_000;
    }
  });

  it('is ready again when no further round has failed, and begins anew', () => {
    hear(FAILED, { everyMs: SWEEP_EVERY_MS, forMs: 300_000 });
    expect(health.reason()).not.toBeNull();
    nowMs += 2 * SWEEP_EVERY_MS + 30_001;
    expect(health.reason()).toBeNull();
    expect(hear(FAILED, { everyMs: SWEEP_EVERY_MS, forMs: 60_000 })).not.toContainEqual(expect.any(String));
  });

  it('stays ready through single failures, however many, and through those that are none of the sweep', () => {
    expect(hear(FAILED, { everyMs: 60_000, forMs: 3_600_000 })).not.toContainEqual(expect.any(String));
    const gaps: ConsumerEvent = { kind: 'ledger-unavailable', operation: 'gaps', error: null };
    expect(hear(gaps, { everyMs: 1_000, forMs: 300_000 })).not.toContainEqual(expect.any(String));
  });

  it('is told of by what the worker observes', () => {
    const logger = createLogger({ name: 'sample', level: 'silent' });
    const { observe } = createConsumerObserver(logger, systemClock, health);
    for (; nowMs <= 120_000; nowMs += SWEEP_EVERY_MS) observe(FAILED);
    expect(health.reason()).not.toBeNull();
  });

  it('waits for several rounds where these are rare', () => {
    health = createSweepHealth({ now: () => nowMs }, { sweepEveryMs: 600_000 });
    const reasons = hear(FAILED, { everyMs: 600_000, forMs: 1_800_000 });
    expect(reasons.map((reason) => reason !== null)).toEqual([false, false, false, true]);
  });
});
