import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady } from '../../e2e/programs.js';
import { startOwnMongo } from '../../integration/mongo-own-server.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { createRelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { createWriter } from '../support/writers.js';

const KILLS = sized({ full: 5, small: 2 });
/** Written around each kill. */
const EVENTS = sized({ full: 400, small: 100 });
const RESUMED_WITHIN_MS = 30_000;

const cleanUp: (() => Promise<void>)[] = [];

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('A database that is killed and started again under load loses nothing that it acknowledged, and the same relay process publishes it', async (context) => {
  const mongodb = await startOwnMongo();
  cleanUp.push(() => mongodb.stop());
  const world = await createRelayWorld({ servers: { ...sharedStack(), mongodbUri: mongodb.uri } });
  cleanUp.push(() => world.close());
  const relay = world.startRelay({ LEASE_MS: '3000', SEND_TIMEOUT_MS: '1000' });
  await untilReady(relay);
  const writer = createWriter(world, { aggregates: 30 });
  const resumedMs: number[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const writing = writer.write(EVENTS);
    const committed = writer.committed.size;
    await until('the load is under way', () => Promise.resolve(writer.committed.size >= committed + EVENTS / 5));
    await mongodb.kill();
    await mongodb.restart();
    const since = performance.now();
    const before = await world.messageCount();
    await until('the relay goes on', async () => (await world.messageCount()) > before, RESUMED_WITHIN_MS);
    resumedMs.push(performance.now() - since);
    await writing;
  }
  await until('every row is published', async () => (await world.rows.countDocuments({ unsettled: true })) === 0);

  const rows = await world.rows.find({}).toArray();
  const kept = new Set(rows.map(({ payload }) => (payload as { number: number }).number));
  const forgotten = [...writer.committed].filter((number) => !kept.has(number));
  const { violations, counts } = await world.judge();
  showFigures(context, {
    kills: KILLS,
    acknowledged: writer.committed.size,
    forgotten: forgotten.length,
    notAcknowledged: writer.failures.length,
    ...counts,
    resumedMsMax: Math.round(Math.max(...resumedMs)),
  });
  expect(violations).toEqual([]);
  expect(forgotten).toEqual([]);
  expect(relay.isRunning).toBe(true);
  expect(counts.published).toBe(rows.length);
});
