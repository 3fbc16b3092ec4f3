import { RELAY_COLLECTIONS, type RepairDocument } from '@nightporter/mongo';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady } from '../../e2e/programs.js';
import { startOwnMongo } from '../../integration/mongo-own-server.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { createRelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { writeBacklog } from '../support/writers.js';

const UNPUBLISHED = sized({ full: 3_000, small: 500 });
const PUBLISHED_BEFORE = 20;
/** SecantusDB forgets in steps of a thousand. */
const OPLOG_ENTRIES_MAX = 1_000;
const FORGOTTEN_AFTER = 3 * OPLOG_ENTRIES_MAX;

const cleanUp: (() => Promise<void>)[] = [];

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('A relay whose place in the history is gone publishes everything all the same, and leaves one record of the repair', async (context) => {
  const mongodb = await startOwnMongo({ oplogMaxEntries: OPLOG_ENTRIES_MAX });
  cleanUp.push(() => mongodb.stop());
  context.skip(mongodb.engine !== 'SecantusDB', 'the history of a real MongoDB is bounded by bytes: 990 MB at least');
  const world = await createRelayWorld({ servers: { ...sharedStack(), mongodbUri: mongodb.uri } });
  cleanUp.push(() => world.close());
  const [topic = ''] = world.topics;

  const first = world.startRelay();
  await untilReady(first);
  await writeBacklog(world, { topic, events: PUBLISHED_BEFORE, aggregates: 10, prefix: 'before' });
  await world.untilPublished(PUBLISHED_BEFORE, 60_000);
  first.signal('SIGTERM');
  expect((await first.ended).exit).toBe(0);

  await writeBacklog(world, { topic, events: UNPUBLISHED, aggregates: 50 });
  // What came after it is forgotten too, so only the outbox itself still knows.
  const filler = Array.from({ length: FORGOTTEN_AFTER }, (_, n) => ({ n }));
  await world.client.db(world.database).collection<{ n: number }>('filler').insertMany(filler);

  const startedMs = performance.now();
  const second = world.startRelay();
  await world.untilPublished(PUBLISHED_BEFORE + UNPUBLISHED, 120_000);
  const seconds = (performance.now() - startedMs) / 1_000;
  const repairs = world.client.db(world.relayDatabase).collection<RepairDocument>(RELAY_COLLECTIONS.repairs);
  await until('the repair is recorded', async () => (await repairs.countDocuments()) > 0);
  // And it follows the stream again.
  await writeBacklog(world, { topic, events: PUBLISHED_BEFORE, aggregates: 10, prefix: 'after' });
  await world.untilPublished(2 * PUBLISHED_BEFORE + UNPUBLISHED, 20_000);
  second.signal('SIGTERM');
  const { exit, stdout } = await second.ended;

  const records = await repairs.find({}).toArray();
  const { violations, counts } = await world.judge();
  showFigures(context, {
    unpublished: UNPUBLISHED,
    secondsToPublish: seconds.toFixed(1),
    ...counts,
    repairs: records.length,
    rowsRepaired: records[0]?.rows ?? 0,
  });
  expect(violations).toEqual([]);
  expect(exit).toBe(0);
  expect(stdout).toContain('change stream lost');
  expect(records.map(({ rows }) => rows)).toEqual([UNPUBLISHED]);
});
