import { describe, expect, it } from 'vitest';
import { NO_FAULTS } from './knobs.js';
import { simulate } from './simulate.js';

const LIMIT = { timeout: 120_000 };

describe('the simulation', () => {
  it('carries every event through when nothing goes wrong', LIMIT, async () => {
    const { violations, events } = await simulate({ seed: 1, knobs: NO_FAULTS });
    expect(violations).toEqual([]);
    expect(events).toBe(NO_FAULTS.events);
  });

  it('replays a seed exactly, step by step', LIMIT, async () => {
    for (const seed of [2, 11, 16]) {
      const first = await simulate({ seed });
      const second = await simulate({ seed, tell: true });
      expect(second.traceHash).toBe(first.traceHash);
      expect(second.steps).toBe(first.steps);
    }
  });

  it('draws another history from another seed', LIMIT, async () => {
    const [first, second] = await Promise.all([simulate({ seed: 3 }), simulate({ seed: 4 })]);
    expect(second.traceHash).not.toBe(first.traceHash);
  });

  it('is not disturbed by another one that runs at the same time', LIMIT, async () => {
    const alone = await simulate({ seed: 5 });
    const [beside] = await Promise.all([simulate({ seed: 5 }), simulate({ seed: 6 })]);
    expect(beside.traceHash).toBe(alone.traceHash);
  });

  it('lets the other topics flow while one takes nothing', LIMIT, async () => {
    for (let seed = 1; seed <= 12; seed += 1) {
      const { violations } = await simulate({ seed, knobs: { ...NO_FAULTS, topicAway: true, events: 60 } });
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  });

  it('shares shards out fairly while relays join, leave, die and pause', LIMIT, async () => {
    const troubles = { sharing: true, relayCrashes: true, relayPauses: true, databaseFaults: 0.06, events: 60 };
    for (let seed = 1; seed <= 6; seed += 1) {
      const { violations } = await simulate({ seed, knobs: { ...NO_FAULTS, ...troubles } });
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  });

  it('lets a group that comes late catch up, whatever kills and pauses its workers', LIMIT, async () => {
    const troubles = {
      lateGroup: true,
      workerCrashes: true,
      workerPauses: true,
      workerRestarts: true,
      crashPoison: true,
    };
    for (let seed = 1; seed <= 6; seed += 1) {
      const knobs = { ...NO_FAULTS, ...troubles, databaseFaults: 0.06, resolveAll: false, events: 60 };
      const { violations } = await simulate({ seed, knobs });
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  });

  it('finds no violation in twenty-five histories of every fault', LIMIT, async () => {
    for (let seed = 1; seed <= 25; seed += 1) {
      const { violations } = await simulate({ seed });
      expect(violations, `seed ${seed}`).toEqual([]);
    }
  });
});
