import { createConsumer, type Consumer, type Delivery, type IncomingEvent } from '@nightporter/consumer';
import { CONSUMER_COLLECTIONS, createGroupStores, ensureConsumerCollections } from '@nightporter/mongo';
import { eventId, groupId } from '@nightporter/protocol';
import { createRedisFilter, type RedisFilter } from '@nightporter/redis-filter';
import { systemClock, systemRandom } from '@nightporter/runtime';
import { incomingEvent } from '@nightporter/testing/conformance';
import type { ClientSession } from 'mongodb';
import { afterEach, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { deliveryOf, handingOut } from './handed-out.js';
import { missingRedis, startRedis, type RedisServer } from './redis-server.js';
import { untilGiven } from './rocketmq-samples.js';

const shared = sharedDatabase();
const missing = missingRedis();
if (missing !== null) process.stderr.write(`redis filter: not tested, because ${missing}\n`);

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function redis(): Promise<RedisServer> {
  const server = await startRedis();
  ends.push(() => server.kill());
  return server;
}

function filterOn(url: string, options: { group?: string; rememberMs?: number } = {}): RedisFilter {
  const filter = createRedisFilter({ url, group: 'group', ...options });
  ends.push(() => filter.close());
  return filter;
}

const until = (what: string, isSo: () => boolean | Promise<boolean>) =>
  untilGiven(async () => ((await isSo()) ? true : null), { limitMs: 10_000, what });

/** Whether the filter can be asked by now. */
const isConnected = (filter: RedisFilter) =>
  filter.seen([eventId('anything')]).then(
    () => true,
    () => false,
  );

describe.skipIf(missing !== null)('A Redis filter', () => {
  const [first, second] = [eventId('first'), eventId('second')];

  it('knows what any member of its group has settled, and nothing of another group', async () => {
    const { url } = await redis();
    const [one, two, stranger] = [filterOn(url), filterOn(url), filterOn(url, { group: 'strangers' })];
    for (const filter of [one, two, stranger]) await until('it is connected', () => isConnected(filter));
    await one.remember([first]);
    expect([...(await two.seen([first, second]))]).toEqual([first]);
    expect((await stranger.seen([first, second])).size).toBe(0);
  });

  it('forgets after its time', async () => {
    const filter = filterOn((await redis()).url, { rememberMs: 100 });
    await until('it is connected', () => isConnected(filter));
    await filter.remember([first]);
    await until('it has forgotten', async () => (await filter.seen([first])).size === 0);
  });

  it('rejects at once while there is no Redis, and does not keep the process from ending', async () => {
    const filter = filterOn('redis://127.0.0.1:1');
    const startedMs = performance.now();
    await expect(filter.seen([first])).rejects.toThrow();
    await expect(filter.remember([first])).rejects.toThrow();
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it('is refused with a URL that is none, whose password is not repeated', () => {
    expect(() => createRedisFilter({ url: 'http://user:secret@host', group: 'g' })).toThrow(/redis:\/\/ or rediss:/);
    expect(() => createRedisFilter({ url: 'http://user:secret@host', group: 'g' })).not.toThrow(/secret/);
  });
});

describe.skipIf(missing !== null)('Workers with a Redis filter', () => {
  /** A member of the group, with what the broker hands it. */
  async function member(database: string, url: string, batches: (readonly Delivery[])[]): Promise<Consumer> {
    const client = shared.client();
    const { repeats, ...stores } = createGroupStores({ client, database, group: 'group' });
    const effects = client.db(database).collection('effects');
    const filter = filterOn(url);
    await until('it is connected', () => isConnected(filter));
    const consumer = createConsumer<ClientSession>(
      {
        ...stores,
        duplicates: { filter, repeats },
        subscribers: [handingOut(batches)],
        emitter: () => () => Promise.resolve(),
        clock: systemClock,
        random: systemRandom,
        observe: () => undefined,
      },
      {
        group: groupId('group'),
        receiveLoops: 1,
        filterMs: 1_000,
        handlers: {
          SampleHappened: async ({ event, session }) => {
            await effects.insertOne({ event: event.eventId }, { session });
          },
        },
      },
    );
    const running = consumer.run();
    ends.push(async () => {
      await consumer.stop();
      await running;
    });
    return consumer;
  }

  async function prepare(): Promise<string> {
    const database = shared.database('filter');
    await ensureConsumerCollections(shared.client(), database);
    await shared.client().db(database).createCollection('effects');
    return database;
  }

  const batchOf = (events: readonly IncomingEvent[]): readonly Delivery[] => events.map(deliveryOf);

  it('know of each other what is settled: repeats at another member cost no transaction, and are counted', async () => {
    const [database, { url }] = [await prepare(), await redis()];
    const events = [1, 2, 3].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const one = await member(database, url, [batchOf(events)]);
    await until('all is settled', () => one.snapshot().applied === 3);
    const probe = filterOn(url);
    const ids = events.map(({ envelope }) => envelope.eventId);
    await until('all is remembered', async () => (await isConnected(probe)) && (await probe.seen(ids)).size === 3);
    const two = await member(database, url, [batchOf(events)]);
    await until('all is acknowledged', () => two.snapshot().acknowledged === 3);
    expect(two.snapshot()).toMatchObject({ filterConfirmed: 3, duplicates: 3, applied: 0 });
    const inbox = shared.client().db(database).collection(CONSUMER_COLLECTIONS.inbox);
    expect(await inbox.countDocuments({ duplicates: 1 })).toBe(3);
  });

  it('go on when Redis is killed, and lose and double nothing', async () => {
    const [database, server] = [await prepare(), await redis()];
    const events = [1, 2, 3, 4].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const batches = [batchOf(events.slice(0, 2))];
    const one = await member(database, server.url, batches);
    await until('the first are settled', () => one.snapshot().applied === 2);
    await server.kill();
    batches.push(batchOf([events[1]!, events[0]!, events[3]!, events[2]!]), batchOf(events));
    await until('all is acknowledged', () => one.snapshot().acknowledged === 10);
    await until('what was parked for its turn is settled', () => one.snapshot().applied === 4);
    expect(one.snapshot().filterFailures).toBeGreaterThan(0);
    expect(await shared.client().db(database).collection('effects').countDocuments()).toBe(4);
  });
});
