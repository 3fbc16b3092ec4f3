import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, type Program } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import type { Carriage } from '../support/careless-publisher.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled, type JournalGroup } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { sized } from '../support/size.js';

const EVENTS = sized({ full: 10_000, small: 600 });
const AGGREGATES = sized({ full: 500, small: 60 });
const KILLS = sized({ full: 10, small: 3 });
const KILL_EVERY_MS = sized({ full: 10_000, small: 2_500 });
const INVISIBLE_MS = sized({ full: 5_000, small: 2_000 });
const LATE_MS = 2_000;
const SETTLED_MS = sized({ full: 900_000, small: 300_000 });
const TRANSACTION_EVENTS = 20;
const WORKERS = 3;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

/** Of 50 messages ten come twice, half of those long after, and one comes late. */
function carriages(): () => Carriage {
  let sent = 0;
  return () => {
    sent += 1;
    if (sent % 50 === 23) return 'late';
    if (sent % 10 === 0) return 'twice';
    return sent % 10 === 5 ? 'twice-later' : 'once';
  };
}

it('events that come twice and late to workers of which one after another is killed take effect once, and in order', async (context) => {
  world = await openJournalWorld({ carriageOf: carriages(), lateMs: LATE_MS, transactionLifetimeSeconds: 20 });
  // What a killed worker had claimed waits for so long; by default 90 s, in which this would wait for nothing else.
  const settings = { INVISIBLE_MS: String(INVISIBLE_MS), CLAIM_MS: '6000' };
  const group = await openJournalGroup(world, { settings });
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => group.startWorker()));
  const started = performance.now();
  const [kills] = await Promise.all([killOneAfterAnother(group, workers), commitAll(KILLS * KILL_EVERY_MS)]);
  await world.publisher.settled();
  await untilSettled(group, EVENTS, SETTLED_MS);
  const seconds = Math.round((performance.now() - started) / 100) / 10;
  await world.publisher.settled();
  const verdict = await expectAllOnce(world, group);
  const processes = new Set((await group.journal.find().toArray()).map(({ processId }) => processId));
  const { carried } = world.publisher;
  const twice = (carried.get('twice') ?? 0) + (carried.get('twice-later') ?? 0);
  showFigures(context, {
    ...verdict,
    aggregates: AGGREGATES,
    workers: WORKERS,
    kills,
    'processes that applied': processes.size,
    'sent twice': twice,
    'sent late': carried.get('late') ?? 0,
    's until all was settled': seconds,
  });
  expect(kills).toBe(KILLS);
  expect(verdict.effects).toBe(EVENTS);
  expect(verdict.duplicates).toBeGreaterThan(0);
  expect(twice).toBeGreaterThanOrEqual(EVENTS / 5);
});

/** Spread over the time of the kills, so that each meets work. */
async function commitAll(durationMs: number): Promise<void> {
  const transactions = EVENTS / TRANSACTION_EVENTS;
  const started = performance.now();
  for (let index = 0; index < transactions; index += 1) {
    const dueMs = (durationMs * index) / transactions - (performance.now() - started);
    if (dueMs > 0) await delay(dueMs);
    const first = index * TRANSACTION_EVENTS;
    const emissions = Array.from({ length: TRANSACTION_EVENTS }, (_, n) => ({
      aggregateId: `a${(first + n) % AGGREGATES}`,
    }));
    await world.commit(emissions);
  }
}

async function killOneAfterAnother(group: JournalGroup, workers: Program[]): Promise<number> {
  let kills = 0;
  while (kills < KILLS) {
    await delay(KILL_EVERY_MS);
    const victim = workers.shift();
    if (victim === undefined) throw new Error('no worker is left to be killed');
    victim.signal('SIGKILL');
    expect((await victim.ended).exit).toBe('SIGKILL');
    kills += 1;
    workers.push(await group.startWorker());
  }
  return kills;
}
