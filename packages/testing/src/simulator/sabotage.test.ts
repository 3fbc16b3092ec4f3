import { describe, expect, it } from 'vitest';
import { NO_FAULTS, type Knobs } from './knobs.js';
import { SABOTAGES } from './sabotage.js';
import { simulate } from './simulate.js';

/** Troubles under which the missing rule shows soon; without any of them most rules are never needed. */
const TROUBLES: Readonly<Record<string, Partial<Knobs>>> = {
  'blind-predecessor': { permanentFailures: true, relayOperators: true, relayCrashes: true, events: 40 },
  'newest-token': { brokerFaults: 0.15 },
  'no-sweep-at-take-over': { relayCrashes: true, brokerOutages: true, prunedHistory: true },
  'no-sweep': { prunedHistory: true, relayCrashes: true, silentSkips: true, brokerOutages: true },
  'unfenced-checkpoint': { databaseFaults: 0.15, relayPauses: true, relayCrashes: true, timeOutMs: 300, events: 60 },
  'unawaited-send': { brokerFaults: 0.15 },
  'charged-outage': { brokerOutages: true },
  'forgetful-marks': { databaseFaults: 0.15, timeOutMs: 300, events: 60 },
  'unconditional-claim': { polling: true, relayPauses: true, slowness: 15, events: 80 },
  'lost-stream-hushed-up': { brokenStreams: true, prunedHistory: true, brokerOutages: true, slowness: 15, events: 60 },
  'untouched-position': { queueChanges: true, poison: true, slowness: 4, aggregates: 1, events: 60 },
  'no-sequence': { queueChanges: true, poison: true, events: 40 },
  'no-inbox': {},
  'acknowledge-first': {},
  'given-up-for-good': { givenUpMessages: true, lostMessages: 0.1, events: 40 },
  'assumed-commit': { databaseFaults: 0.15, timeOutMs: 300 },
  'no-baton': { poison: true, events: 60 },
  'never-blocked': { poison: true, events: 40 },
  'uncounted-claims': { poison: true, events: 40, resolveAll: false },
  'no-ledger-sweep': { lostMessages: 0.1, events: 40 },
  'no-walk': { lostMessages: 0.1, events: 40 },
  'watermark-first': { lostMessages: 0.1, events: 40 },
  'mark-after': { lateGroup: true, crashPoison: true, resolveAll: false, events: 60 },
  'mark-not-consulted': { lateGroup: true, crashPoison: true, resolveAll: false, events: 60 },
  'watermark-at-mark': { lateGroup: true, events: 60 },
  'corrupt-squatters': { corruptCopies: true, brokerOutages: true, slowness: 4, events: 60 },
  'dropped-failures': { poison: true, events: 40 },
};

const SEEDS_MAX = 12;

/**
 * A claim must meet the mark of another relay within one call: one history in seven has that, whatever the troubles. And an event that ends its
 * process must run in a batch of the walk first, and not because the broker brought it too.
 */
const RARE: Readonly<Record<string, number>> = {
  'unconditional-claim': 60,
  'mark-after': 60,
  'mark-not-consulted': 60,
};

describe('a rule that is taken away', () => {
  it('has a trouble under which it is missed, for each', () => {
    expect(Object.keys(TROUBLES).sort()).toEqual(SABOTAGES.map(({ name }) => name).sort());
  });

  for (const sabotage of SABOTAGES) {
    it(`is missed: ${sabotage.removes} (${sabotage.name})`, { timeout: 120_000 }, async ({ annotate }) => {
      const knobs = { ...NO_FAULTS, ...TROUBLES[sabotage.name] };
      const intact = await simulate({ seed: 1, knobs });
      expect(intact.violations).toEqual([]);
      const seedsMax = RARE[sabotage.name] ?? SEEDS_MAX;
      for (let seed = 1; seed <= seedsMax; seed += 1) {
        const { violations } = await simulate({ seed, knobs, sabotage });
        const violation = violations.find(({ rule }) => sabotage.breaks.some((broken) => rule.startsWith(broken)));
        if (violation === undefined) continue;
        await annotate(`seed ${seed}: ${violation.rule}: ${violation.detail}`);
        return;
      }
      expect.fail(`${sabotage.name} broke none of: ${sabotage.breaks.join(', ')}, in seeds 1 to ${seedsMax}`);
    });
  }
});
