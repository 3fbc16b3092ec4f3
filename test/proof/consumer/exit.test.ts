import { createDeadLetters } from '@nightporter/ledger';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled, type JournalGroup } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { EXIT_CODE } from '../support/programs/journal.js';
import { secondsSince } from '../support/times.js';

const HEALTHY = 64;
const ATTEMPTS = 3;
/** Times that the process may end before the engine knows which event it is: as often as it trusts a delivery. */
const UNCHARGED_MAX = 2;
const LIMIT_MS = 240_000;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

/** Starts a worker whenever there is none, as whatever runs it would, until told to stop. Resolves to the number of exits. */
async function superviseUntil(isOver: () => boolean, group: JournalGroup): Promise<number> {
  let exits = 0;
  while (!isOver()) {
    const worker = await group.startWorker().catch(() => null);
    if (worker === null) {
      // It ended before it was ready: its handler may run that soon.
      exits += 1;
      continue;
    }
    while (worker.isRunning && !isOver()) await Promise.race([worker.ended, new Promise((r) => setTimeout(r, 50))]);
    if (worker.isRunning) continue;
    expect((await worker.ended).exit).toBe(EXIT_CODE);
    exits += 1;
  }
  return exits;
}

it('an event that ends its process is dead after its attempts, and the 64 healthy events of its queue apply', async (context) => {
  world = await openJournalWorld({ queues: 1, transactionLifetimeSeconds: 10 });
  const settings = { ATTEMPTS_MAX: String(ATTEMPTS), INVISIBLE_MS: '2000', CLAIM_MS: '12000' };
  const group = await openJournalGroup(world, { settings });
  const poisonAt = HEALTHY / 2;
  const ids = await world.commit(
    Array.from({ length: HEALTHY + 1 }, (_, index) => ({
      aggregateId: `a${index}`,
      orders: index === poisonAt ? { exits: true } : {},
    })),
  );
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === HEALTHY + 1;
  await until('all is published', isPublished, 60_000);
  const started = performance.now();
  let isOver = false;
  const supervised = superviseUntil(() => isOver, group);
  try {
    await untilSettled(group, HEALTHY, LIMIT_MS);
    const isDead = async () => (await group.parked.countDocuments({ state: 'dead' })) === 1;
    await until('the event is dead', isDead, LIMIT_MS);
  } finally {
    isOver = true;
  }
  const exits = await supervised;
  const { client } = world;
  const deadLetters = await createDeadLetters({ client, database: group.database, group: group.group }).list();
  const records = await group.inbox.find().toArray();
  showFigures(context, {
    healthy: HEALTHY,
    applied: await group.journal.countDocuments(),
    dead: deadLetters.length,
    attempts: deadLetters[0]?.attempts ?? 0,
    'exits of the process': exits,
    'most attempts of a healthy event': Math.max(...records.map(({ attempts }) => attempts)),
    's until all was settled or dead': secondsSince(started),
  });
  expect(deadLetters).toMatchObject([{ eventId: ids[poisonAt], attempts: ATTEMPTS }]);
  expect(await group.journal.distinct('eventId')).toHaveLength(HEALTHY);
  expect(await group.journal.countDocuments()).toBe(HEALTHY);
  expect(exits).toBeLessThanOrEqual(ATTEMPTS + UNCHARGED_MAX);
});
