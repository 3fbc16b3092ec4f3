import { createDeadLetters } from '@nightporter/ledger';
import { OUTBOX_COLLECTIONS, type GroupDocument } from '@nightporter/mongo';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import {
  JOURNAL_PROGRAMS,
  openJournalGroup,
  statusOf,
  untilSettled,
  type JournalGroup,
} from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { EXIT_CODE } from '../support/programs/journal.js';
import { KILL_POINTS } from '../support/programs/kill-points.js';
import { sized } from '../support/size.js';
import { secondsSince } from '../support/times.js';

const EVENTS = sized({ full: 6_000, small: 600 });
const AGGREGATES = sized({ full: 2_000, small: 200 });
/** Lives that end at each point. */
const LIVES = sized({ full: 4, small: 1 });
const TRANSACTION_EVENTS = 40;
const EVERY_MS = 50;
const LIMIT_MS = 240_000;
/** A killed worker must not hold the sweep for long, nor a claim. */
const SETTINGS = { LEDGER_SWEEP_EVERY_MS: '500', LEDGER_LAG_MS: '500', SWEEP_CLAIM_MS: '1000', CLAIM_MS: '12000' };
/** So many neighbours share a transaction with the event that ends its process. */
const NEIGHBOURS = 63;
const ATTEMPTS = 3;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

async function commitHistory(count: number): Promise<void> {
  for (let first = 0; first < count; first += TRANSACTION_EVENTS) {
    await world.commit(
      Array.from({ length: Math.min(TRANSACTION_EVENTS, count - first) }, (_, n) => ({
        aggregateId: `a${(first + n) % AGGREGATES}`,
      })),
    );
  }
}

async function untilPublished(count: number): Promise<void> {
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === count;
  await until('all is published', isPublished, LIMIT_MS);
}

/** Commits to old and new aggregates until it is told to end; resolves to how many events. */
function keepComing(): { end(): Promise<number> } {
  let isOver = false;
  const coming = (async () => {
    let count = 0;
    while (!isOver) {
      await world.commit([{ aggregateId: `a${count % (2 * AGGREGATES)}` }]);
      count += 1;
      await delay(EVERY_MS);
    }
    return count;
  })();
  return {
    end() {
      isOver = true;
      return coming;
    },
  };
}

/** Whether the walk of the history is over. */
async function isLive({ group }: JournalGroup): Promise<boolean> {
  const groups = world.client.db(world.producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  return (await groups.findOne({ _id: group }))?.state === 'live';
}

/** Lets a worker live until it kills itself at the point, or has nothing left to walk. A death before it is ready is one as well. */
async function liveUntil(group: JournalGroup, settings: Readonly<Record<string, string>>): Promise<boolean> {
  const worker = await group.startWorker(settings).catch(() => null);
  if (worker === null) return true;
  const isOver = async (): Promise<boolean> => !worker.isRunning || (await isLive(group));
  await until('the worker is dead, or the walk is over', isOver, LIMIT_MS);
  return !worker.isRunning && (await worker.ended).exit === 'SIGKILL';
}

it('a worker that is killed anywhere in a batch of a group’s history leaves nothing lost, doubled or misordered, while new events keep coming', async (context) => {
  world = await openJournalWorld({ transactionLifetimeSeconds: 10 });
  await commitHistory(EVENTS);
  await untilPublished(EVENTS);
  const started = performance.now();
  const coming = keepComing();
  let kills = 0;
  const group = await openJournalGroup(world, { settings: { ...SETTINGS, CATCH_UP_MAX: '16', RECEIVE_LOOPS: '2' } });
  for (let life = 0; life < LIVES; life += 1) {
    for (const point of KILL_POINTS) {
      if (await liveUntil(group, { DIE_AT: point, DIE_AFTER: point === 'before-watermark' ? '0' : '2' })) kills += 1;
    }
  }
  const survivors = await Promise.all([group.startWorker(), group.startWorker()]);
  await untilSettled(group, EVENTS, LIMIT_MS);
  const committed = EVENTS + (await coming.end());
  await untilSettled(group, committed, LIMIT_MS);
  const verdict = await expectAllOnce(world, group);
  const told = await Promise.all(survivors.map(statusOf));
  showFigures(context, {
    'events before': EVENTS,
    'events meanwhile': committed - EVENTS,
    kills,
    effects: verdict.effects,
    lost: verdict.lost,
    doubled: verdict.doubled,
    misordered: verdict.misordered,
    's until all was settled': secondsSince(started),
    'left to the walk, by the last two': told.reduce((sum, { leftToLedger }) => sum + Number(leftToLedger), 0),
  });
  expect(kills).toBe(LIVES * KILL_POINTS.length);
  expect(verdict.effects).toBe(committed);
});

it('an event of a group’s history that ends its process is dead after its attempts, and the 63 others of its batch apply', async (context) => {
  world = await openJournalWorld({ transactionLifetimeSeconds: 10 });
  const poisonAt = 31;
  const ids = await world.commit(
    Array.from({ length: NEIGHBOURS + 1 }, (_, index) => ({
      aggregateId: `a${index}`,
      orders: index === poisonAt ? { exits: true } : {},
    })),
  );
  await untilPublished(NEIGHBOURS + 1);
  const started = performance.now();
  const settings = { ...SETTINGS, RECEIVE_LOOPS: '1', CATCH_UP_MAX: '64', ATTEMPTS_MAX: String(ATTEMPTS) };
  const group = await openJournalGroup(world, { settings });
  const isDead = async () => (await group.parked.countDocuments({ state: 'dead' })) === 1;
  let exits = 0;
  while (!(await isDead())) {
    expect(performance.now() - started).toBeLessThan(LIMIT_MS);
    const worker = await group.startWorker().catch(() => null);
    const isOver = async (): Promise<boolean> => worker?.isRunning !== true || isDead();
    await until('the event is dead, or its process', isOver, LIMIT_MS);
    if (worker?.isRunning === true) break;
    if (worker !== null) expect((await worker.ended).exit).toBe(EXIT_CODE);
    exits += 1;
  }
  await untilSettled(group, NEIGHBOURS, LIMIT_MS);
  const { client } = world;
  const deadLetters = await createDeadLetters({ client, database: group.database, group: group.group }).list();
  const records = await group.inbox.find().toArray();
  showFigures(context, {
    healthy: NEIGHBOURS,
    applied: await group.journal.countDocuments(),
    dead: deadLetters.length,
    attempts: deadLetters[0]?.attempts ?? 0,
    'exits of the process': exits,
    'most attempts of a healthy event': Math.max(...records.map(({ attempts }) => attempts)),
    's until all was settled or dead': secondsSince(started),
  });
  expect(deadLetters).toMatchObject([{ eventId: ids[poisonAt], attempts: ATTEMPTS }]);
  expect(await group.journal.distinct('eventId')).toHaveLength(NEIGHBOURS);
  expect(await group.journal.countDocuments()).toBe(NEIGHBOURS);
  // One exit beside its neighbours, which charges nobody; then alone, at most as often as it has attempts.
  expect(exits).toBeLessThanOrEqual(ATTEMPTS + 1);
});
