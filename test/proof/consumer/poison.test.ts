import { createDeadLetters } from '@nightporter/ledger';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled, type JournalGroup } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { journalCatalogue } from '../support/programs/journal.js';
import { sized } from '../support/size.js';
import { percentile } from '../support/times.js';

const HEALTHY = 9;
const EVERY_MS = 20;
/** With and without poison in turn, so that what else the machine does meets both. */
const ROUNDS = sized({ full: 10, small: 2 });
const ROUND_EVENTS = sized({ full: 500, small: 150 });
/** For what has no time of its own to keep to. */
const LIMIT_MS = sized({ full: 600_000, small: 60_000 });
const POISONED = 'poisoned';
/**
 * Of the latencies that are compared. In the six seconds of a small run, one stall of the database is a tenth of its events: chance. A poison that
 * holds its queue delays more than half of them.
 */
const SHARE = sized({ full: 0.99, small: 0.5 });

const worlds: JournalWorld[] = [];

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => Promise.all(worlds.splice(0).map((world) => world.close())));

/** One queue, so that all aggregates share it, and one worker. */
async function openLane(): Promise<JournalGroup> {
  const world = await openJournalWorld({ queues: 1 });
  worlds.push(world);
  const group = await openJournalGroup(world, { settings: { ATTEMPTS_MAX: '3' } });
  await group.startWorker();
  // The first events of a process are slow whatever else happens.
  await world.commit(Array.from({ length: HEALTHY }, (_, index) => ({ aggregateId: `h${index}` })));
  await untilSettled(group, HEALTHY, LIMIT_MS);
  return group;
}

/** Ten aggregates in turn, one of them the poisoned one; `poisonAt` is the event that its handler cannot take. */
async function commitRound({ world }: JournalGroup, poisonAt: number | null): Promise<void> {
  const started = performance.now();
  for (let index = 0; index < ROUND_EVENTS; index += 1) {
    const dueMs = index * EVERY_MS - (performance.now() - started);
    if (dueMs > 0) await delay(dueMs);
    const place = index % (HEALTHY + 1);
    const aggregateId = place === HEALTHY ? POISONED : `h${place}`;
    await world.commit([{ aggregateId, orders: index === poisonAt ? { failures: 1_000_000 } : {} }]);
  }
}

/** From commit to effect, of the healthy aggregates, without the first event of each. */
async function latenciesMs({ world, inbox }: JournalGroup): Promise<readonly number[]> {
  const records = await inbox.find().toArray();
  const processedAt = new Map<string, Date>(records.map((record) => [record.eventId, record.processedAt]));
  const rows = await world.outbox.find({ aggregateId: /^h/, aggregateVersion: { $gt: 1 } as object }).toArray();
  return rows.map(({ _id, createdAt }) => processedAt.get(_id)!.getTime() - createdAt.getTime());
}

it('a poison event does not slow the other aggregates of its queue, and once it is mended its own follow in order', async (context) => {
  const [clean, poisoned] = [await openLane(), await openLane()];
  const poisonAt = HEALTHY + 10 * Math.floor(ROUND_EVENTS / 20);
  for (let round = 0; round < ROUNDS; round += 1) {
    await commitRound(clean, null);
    await commitRound(poisoned, round === 0 ? poisonAt : null);
  }
  const sent = HEALTHY + ROUNDS * ROUND_EVENTS;
  const { database, group, world, parked } = poisoned;
  const catalogue = journalCatalogue(world.topic);
  const read = catalogue.read.bind(catalogue);
  const deadLetters = createDeadLetters({ client: world.client, database, group, read });
  const behind = (ROUNDS * ROUND_EVENTS) / (HEALTHY + 1) - (poisonAt + 1) / (HEALTHY + 1);
  await untilSettled(clean, sent, LIMIT_MS);
  await until('all behind the poison is parked', async () => (await parked.countDocuments()) === behind + 1, LIMIT_MS);
  await untilSettled(poisoned, sent - behind - 1, LIMIT_MS);
  const [without, withPoison] = [await latenciesMs(clean), await latenciesMs(poisoned)];
  const [deadLetter] = await deadLetters.list();
  expect(deadLetter).toMatchObject({ attempts: 3 });
  const { eventId, revision } = deadLetter!;
  const mended = performance.now();
  const edit = { by: 'proof', reason: 'the data was wrong', data: { orders: {} } };
  expect(await deadLetters.editAndRetry({ eventId, revision }, edit)).toEqual({ kind: 'done' });
  await untilSettled(poisoned, sent, 2 * LIMIT_MS);
  const drainedMs = Math.round(performance.now() - mended);
  const verdict = await expectAllOnce(world, poisoned);
  await expectAllOnce(clean.world, clean);
  const compared = { without: percentile(without, SHARE), with: percentile(withPoison, SHARE) };
  showFigures(context, {
    ...verdict,
    'healthy events': withPoison.length,
    'p50 ms without poison': percentile(without, 0.5),
    'p50 ms with poison': percentile(withPoison, 0.5),
    'p90 ms without poison': percentile(without, 0.9),
    'p90 ms with poison': percentile(withPoison, 0.9),
    'p99 ms without poison': percentile(without, 0.99),
    'p99 ms with poison': percentile(withPoison, 0.99),
    'parked behind': behind,
    'ms from the edit until all was applied': drainedMs,
  });
  expect(verdict.edited).toBe(1);
  expect(compared.with).toBeLessThanOrEqual(Math.max(2 * compared.without, compared.without + 100));
});
