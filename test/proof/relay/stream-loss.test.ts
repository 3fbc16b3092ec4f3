import type { MongoOptions } from '@nightporter/embedded';
import { BSON, type Collection } from 'mongodb';
import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sized } from '../support/size.js';
import { BUFFER_MAX, createStreamWorld, type StreamWorld } from '../support/stream-world.js';

const EVENTS = sized({ full: 1_500, small: 150 });
/** SecantusDB forgets in steps of a thousand. */
const OPLOG_ENTRIES_MAX = 1_000;
const FORGOTTEN_AFTER = 3 * OPLOG_ENTRIES_MAX;
const REAL_MONGODB = 'the history of a real MongoDB is bounded by bytes: 990 MB at least';
const LOST_AT_START = 'history lost at the checkpoint';
const NOT_BROUGHT = 'rows that the stream did not bring';

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

describe('A relay publishes everything, in order, and keeps one record of the repair,', () => {
  it('when the history behind its checkpoint is gone', async (context) => {
    const world = await worldWithShortHistory(context);
    await followAndStop(world);
    await world.write(EVENTS);
    await world.forget(FORGOTTEN_AFTER);
    await world.start();
    // One of the relay before, one that is refused, one anew.
    await expectWhole(context, world, { reason: LOST_AT_START, rows: EVENTS, openings: 3 });
  });

  it('when its cursor is killed and the history behind it is gone', async (context) => {
    const world = await worldWithShortHistory(context);
    await world.start();
    await stall(world);
    await world.write(EVENTS);
    await world.forget(FORGOTTEN_AFTER);
    await killCursor(world);
    world.openBroker();
    // The driver tries to resume, and so do we, before it is opened anew.
    await expectWhole(context, world, { reason: 'stream lost', openings: { from: 2, to: 5 } });
  });

  it.for([
    ['no JSON at all', 'nonsense', 2],
    ['of no server', '{"_data":"82FFFFFFFF000000012B0229296E04"}', 3],
    ['empty', '{"_data":""}', 3],
  ] as const)('when its token is %s', async ([, token, openings], context) => {
    const world = await worldOf();
    await followAndStop(world);
    await world.write(EVENTS);
    await replaceToken(world, token);
    await world.start();
    await expectWhole(context, world, { reason: LOST_AT_START, rows: EVENTS, openings });
  });

  it.for(['drop', 'rename', 'dropDatabase'] as const)(
    'and gives the outbox its indexes back, after a %s',
    async (how, context) => {
      const world = await worldOf();
      await world.start();
      await world.write(EVENTS);
      await world.untilPublished();
      if (how === 'drop') await world.outbox.drop();
      else if (how === 'rename') await world.outbox.rename('elsewhere');
      else await world.client.db(world.outbox.dbName).dropDatabase();
      await world.write(30);
      await until('the indexes are back', () => hasIndexes(world));
      await world.write(EVENTS);
      const records = how === 'dropDatabase' ? { from: 1, to: 2 } : 1;
      await expectWhole(context, world, { reason: 'an outbox was dropped or renamed', records, openings: 1 });
    },
  );

  it.for(['of another collection’s stream', 'of a stream that a drop has ended'] as const)(
    'or resumes and keeps none, when its token is %s',
    async (which, context) => {
      const world = await worldOf();
      await followAndStop(world);
      const other = world.client.db(world.outbox.dbName).collection<{ n: number }>('other');
      const token = await foreignToken(other, { ended: which === 'of a stream that a drop has ended' });
      await world.write(EVENTS);
      await replaceToken(world, token);
      await world.start();
      await world.untilPublished();
      // Two streams: the server took the token. Three: it refused it.
      const isLost = world.streams.openings > 2;
      await expectWhole(
        context,
        world,
        isLost ? { reason: LOST_AT_START, rows: EVENTS, openings: 3 } : { openings: 2 },
      );
    },
  );
});

describe('A relay publishes everything, in order, and puts on record how many rows the sweep alone has found,', () => {
  it('when the stream falls behind its history and goes on in silence', async (context) => {
    const world = await worldWithShortHistory(context);
    await world.start();
    await stall(world);
    await world.write(EVENTS);
    await world.forget(FORGOTTEN_AFTER);
    world.openBroker();
    await expectWhole(context, world, { reason: NOT_BROUGHT, rows: EVENTS, records: { from: 1, to: 4 }, openings: 1 });
  });

  it('when rows come that no stream brings', async (context) => {
    const world = await worldOf();
    await world.start();
    await world.writeUnseen(EVENTS);
    await expectWhole(context, world, { reason: NOT_BROUGHT, rows: EVENTS, records: { from: 1, to: 4 }, openings: 1 });
  });
});

it('A relay publishes what a transaction commits that was open while the indexes of a dropped outbox came back, in order', async (context) => {
  const world = await worldOf();
  context.skip(
    world.server.engine !== 'SecantusDB',
    'an index build of MongoDB waits for the transactions that are open',
  );
  await world.start();
  await world.outbox.drop();
  await world.write(30);
  await world.writeUnseenAround(() => until('the indexes are back', () => hasIndexes(world)));
  await world.untilPublished();
  const { violations, ...counts } = await world.judge();
  showFigures(context, counts);
  expect(violations).toEqual([]);
});

describe('A relay publishes everything, in order, and has nothing to repair,', () => {
  it('when its cursor is killed', async (context) => {
    const world = await worldOf();
    await world.start();
    for (let round = 0; round < 3; round += 1) {
      await world.write(EVENTS / 3);
      await killCursor(world);
      await world.write(EVENTS / 3);
      await world.untilPublished();
    }
    await expectWhole(context, world, { openings: { from: 2, to: 4 } });
  });

  it('when the server is killed and started again', async (context) => {
    const world = await worldOf();
    await world.start();
    for (let round = 0; round < 2; round += 1) {
      await world.write(EVENTS / 3);
      await world.server.kill();
      await world.server.restart();
      await world.write(EVENTS / 3);
      await world.untilPublished();
    }
    await expectWhole(context, world, { openings: { from: 2, to: 7 } });
  });
});

async function worldOf(options: MongoOptions = {}): Promise<StreamWorld> {
  const world = await createStreamWorld(options);
  cleanUp.push(() => world.close());
  return world;
}

async function worldWithShortHistory(context: TestContext): Promise<StreamWorld> {
  const world = await worldOf({ oplogMaxEntries: OPLOG_ENTRIES_MAX });
  context.skip(world.server.engine !== 'SecantusDB', REAL_MONGODB);
  return world;
}

async function hasIndexes({ outbox }: StreamWorld): Promise<boolean> {
  const names = (await outbox.indexes()).map(({ name }) => name);
  return ['aggregate_version', 'unsettled_by_slot', 'status_published'].every((name) => names.includes(name));
}

/** Leaves a checkpoint behind. */
async function followAndStop(world: StreamWorld): Promise<void> {
  await world.start();
  await world.write(30);
  await world.untilPublished();
  await world.stop();
  expect((await world.checkpoints.findOne())?.token).toEqual(expect.any(String));
}

/** Until the broker is opened again the relay reads no more of its stream. */
async function stall(world: StreamWorld): Promise<void> {
  world.closeBroker();
  await world.write(2 * BUFFER_MAX);
  await until('the relay has no more room', () => Promise.resolve(world.rowsInMemory >= BUFFER_MAX));
}

async function killCursor({ client, streams }: StreamWorld): Promise<void> {
  await client.db('admin').command({ killCursors: '$cmd.aggregate', cursors: [streams.cursor] });
}

async function replaceToken({ checkpoints }: StreamWorld, token: string): Promise<void> {
  const { modifiedCount } = await checkpoints.updateOne({}, { $set: { token } });
  expect(modifiedCount).toBe(1);
}

/** `ended`: of the event with which the stream of a dropped collection ends. */
async function foreignToken(other: Collection<{ n: number }>, { ended }: { ended: boolean }): Promise<string> {
  await other.insertOne({ n: 0 });
  const stream = other.watch([], { maxAwaitTimeMS: 100 });
  try {
    // Opens the stream: an insert that overtook that would never come.
    await stream.tryNext();
    await other.insertOne({ n: 1 });
    await stream.next();
    if (ended) {
      await other.drop();
      while ((await stream.next()).operationType !== 'invalidate');
    }
    return BSON.EJSON.stringify(stream.resumeToken, { relaxed: false });
  } finally {
    await stream.close();
  }
}

interface Range {
  readonly from: number;
  readonly to: number;
}

interface Expected {
  /** Of every record; absent where there must be none. */
  readonly reason?: string;
  /** All that the records tell of; absent where it depends on how far the relay had come. */
  readonly rows?: number;
  /** Default: one, or none where no reason is expected. */
  readonly records?: number | Range;
  /** Streams asked for by the driver of all relays: more would be a hot loop. */
  readonly openings: number | Range;
}

/** Everything is published, in order, the stream is followed again, and exactly the repair that was needed is on record. */
async function expectWhole(context: TestContext, world: StreamWorld, expected: Expected): Promise<void> {
  const { reason, rows, records = reason === undefined ? 0 : 1, openings: allowed } = expected;
  const startedMs = performance.now();
  await world.untilPublished();
  const secondsToPublish = ((performance.now() - startedMs) / 1_000).toFixed(1);
  const rowsOnRecord = async () => (await world.repairs()).reduce((sum, repair) => sum + repair.rows, 0);
  if (reason !== undefined) {
    const isOnRecord = async () => (await world.repairs()).length > 0 && (await rowsOnRecord()) >= (rows ?? 0);
    await until('the repair is on record', isOnRecord);
  }
  await world.write(30);
  await world.untilPublished();
  const { openings } = world.streams;
  await world.stop();

  const { violations, ...counts } = await world.judge();
  const repairs = await world.repairs();
  const rowsRepaired = await rowsOnRecord();
  showFigures(context, { ...counts, secondsToPublish, repairs: repairs.length, rowsRepaired, openings });
  expect(violations).toEqual([]);
  expect(new Set(repairs.map((repair) => repair.reason))).toEqual(new Set(reason === undefined ? [] : [reason]));
  expect(repairs.every(({ at }) => at instanceof Date)).toBe(true);
  expectWithin(repairs.length, records);
  expectWithin(openings, allowed);
  if (rows !== undefined) expect(rowsRepaired).toBe(rows);
}

function expectWithin(count: number, allowed: number | Range): void {
  const { from, to } = typeof allowed === 'number' ? { from: allowed, to: allowed } : allowed;
  expect(count).toBeGreaterThanOrEqual(from);
  expect(count).toBeLessThanOrEqual(to);
}
