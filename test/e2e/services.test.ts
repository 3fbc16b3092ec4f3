import type { OutboxDocument } from '@nightporter/contracts';
import { createInventoryWorker, inventoryCollections } from '@nightporter/inventory-worker';
import { connectMongo, CONSUMER_COLLECTIONS, type InboxDocument } from '@nightporter/mongo';
import { aggregateVersion } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { showFigures } from '../support/figures.js';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program } from './programs.js';

const TOPIC = 'orders-events';
const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }] };

let client: MongoClient;
/** Names of this test alone. */
let names: { readonly orders: string; readonly inventory: string; readonly relay: string; readonly group: string };
const running: Program[] = [];

beforeAll(async () => {
  buildPrograms('services/orders-api', 'services/relay', 'services/inventory-worker');
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await createTopic({ name: TOPIC });
  await createTopic({ name: 'inventory-events' });
});
afterAll(() => client.close());

beforeEach(async () => {
  names = { orders: uniqueName('o'), inventory: uniqueName('i'), relay: uniqueName('r'), group: uniqueName('g') };
  // The topic is the catalogue's, and other tests may have left events there: this group begins behind them.
  await createGroup({ name: names.group, topics: [TOPIC] });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
});

function start(name: 'orders-api' | 'relay' | 'inventory-worker', settings: Record<string, string> = {}): Program {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const own = {
    'orders-api': { MONGODB_DB: names.orders },
    relay: {
      MONGODB_DB: names.relay,
      OUTBOX_NAMESPACES: `${names.orders}.outbox,${names.inventory}.outbox`,
      LEASE_MS: '7000',
    },
    'inventory-worker': {
      MONGODB_DB: names.inventory,
      ORDERS_DB: names.orders,
      GROUP: names.group,
      STOCK: 'apple=1000',
      INVISIBLE_MS: '3000',
    },
  }[name];
  const program = runService(name, {
    MONGODB_URI: mongodbUri,
    ROCKETMQ_ENDPOINTS: rocketmqEndpoints,
    ...own,
    ...settings,
  });
  running.push(program);
  return program;
}

async function post(url: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

/** Places orders and pays them: two events each. */
async function placeOrders(api: string, count: number): Promise<readonly string[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const { orderId } = await post(`${api}/orders`, order);
      await post(`${api}/orders/${String(orderId)}/pay`, { transactionId: `t${index}` });
      return String(orderId);
    }),
  );
}

const outbox = () => client.db(names.orders).collection<OutboxDocument>('outbox');
const inbox = () => client.db(names.inventory).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
const movements = () => inventoryCollections(client.db(names.inventory)).movements;

async function isWorking(relayUrl: string): Promise<boolean> {
  const status = (await (await fetch(`${relayUrl}/status`)).json()) as { shards: readonly { state: string }[] };
  return status.shards.every(({ state }) => state === 'following');
}

describe('the services together', () => {
  it('bring every event of an order to the stock, and back when it is cancelled', async () => {
    const [api] = await Promise.all([start('orders-api'), start('relay'), start('inventory-worker')].map(untilReady));
    const [kept = '', cancelled = ''] = await placeOrders(api!, 2);
    await post(`${api!}/orders/${cancelled}/cancel`, { reason: 'too late' });
    await until('five events are settled', async () => (await inbox().countDocuments()) === 5);
    const stock = await inventoryCollections(client.db(names.inventory)).stock.findOne({ _id: 'apple' });
    expect(stock).toMatchObject({ available: 999, reserved: 0, shipped: 1 });
    const kinds = await movements()
      .find({ orderId: { $in: [kept, cancelled] } }, { sort: { orderId: 1, sequence: 1 } })
      .toArray();
    expect(kinds.filter(({ orderId }) => orderId === kept).map(({ kind }) => kind)).toEqual(['reserved', 'committed']);
    expect(kinds.filter(({ orderId }) => orderId === cancelled).map(({ kind }) => kind)).toEqual([
      'reserved',
      'committed',
      'returned',
    ]);
    const told = await client
      .db(names.inventory)
      .collection<OutboxDocument>('outbox')
      .find({ aggregateId: cancelled }, { sort: { aggregateVersion: 1 } })
      .toArray();
    expect(told.map(({ eventType }) => eventType)).toEqual([
      'InventoryReserved',
      'InventoryCommitted',
      'InventoryReturned',
    ]);
    // One story: what the worker tells names the event that made it do so.
    const [created] = await outbox()
      .find({ aggregateId: cancelled, aggregateVersion: aggregateVersion(1) })
      .toArray();
    expect(told[0]?.headers).toMatchObject({
      causationId: created!._id,
      correlationId: created!.headers.correlationId,
    });
  });

  it('deliver an event twice with one effect, and acknowledge the second delivery at once', async (context) => {
    const [api] = await Promise.all([start('orders-api'), start('relay'), start('inventory-worker')].map(untilReady));
    const request = { topic: TOPIC, group: names.group };
    const ends = new Map((await sharedStack().offsets(request)).map(({ maxOffset, queueId }) => [queueId, maxOffset]));
    await placeOrders(api!, 3);
    const isAtEnd = async () => (await sharedStack().offsets(request)).every(({ lag }) => lag === 0);
    await until(
      'six events are settled and acknowledged',
      async () => (await inbox().countDocuments()) === 6 && (await isAtEnd()),
    );
    // Only where the last message is ours: the topic has those of other tests too.
    for (const { maxOffset, queueId } of await sharedStack().offsets(request)) {
      if (maxOffset > (ends.get(queueId) ?? 0))
        await sharedStack().rewind({ ...request, queueId, offset: maxOffset - 1 });
    }
    const rewound = performance.now();
    await until('the repeats are acknowledged', isAtEnd, 10_000);
    const acknowledgedMs = Math.round(performance.now() - rewound);
    await until(
      'the repeats are counted',
      async () => (await inbox().countDocuments({ duplicates: { $gt: 0 } })) > 0,
      5_000,
    );
    const duplicates = await inbox().countDocuments({ duplicates: { $gt: 0 } });
    expect([await inbox().countDocuments(), await movements().countDocuments()]).toEqual([6, 6]);
    showFigures(context, { events: 6, effects: 6, duplicates, 'ms until acknowledged': acknowledgedMs });
  });

  it('publish what was committed while there was no relay, and what a killed relay had read but not sent', async (context) => {
    const api = await untilReady(start('orders-api'));
    await placeOrders(api, 40);
    const first = start('relay', { WINDOW_MAX: '1' });
    await until(
      'the first relay has published something',
      async () => (await outbox().countDocuments({ status: 'PUBLISHED' })) > 0,
    );
    first.signal('SIGKILL');
    await first.ended;
    const published = await outbox().countDocuments({ status: 'PUBLISHED' });
    expect(published).toBeLessThan(80);
    start('relay');
    await until(
      'the second relay has published the rest',
      async () => (await outbox().countDocuments({ status: 'PUBLISHED' })) === 80,
    );
    const rows = await outbox()
      .find({}, { sort: { aggregateId: 1, aggregateVersion: 1 } })
      .toArray();
    for (const [index, row] of rows.entries()) {
      const next = rows[index + 1];
      if (next?.aggregateId === row.aggregateId)
        expect(row.publishedAt!.getTime()).toBeLessThanOrEqual(next.publishedAt!.getTime());
    }
    showFigures(context, { events: rows.length, 'published before the kill': published, lost: 0, misordered: 0 });
  });

  it('hand the relay over at once on SIGTERM, without waiting for the lease', async () => {
    const api = await untilReady(start('orders-api'));
    const first = start('relay', { LEASE_MS: '60000' });
    const firstUrl = await untilReady(first);
    await until('the first relay works', () => isWorking(firstUrl));
    const secondUrl = await untilReady(start('relay', { LEASE_MS: '60000' }));
    first.signal('SIGTERM');
    const { exit, stdout } = await first.ended;
    expect(exit, stdout).toBe(0);
    await until('the second relay works', () => isWorking(secondUrl), 15_000);
    await placeOrders(api, 1);
    await until('the events are published', async () => (await outbox().countDocuments({ status: 'PUBLISHED' })) === 2);
  });
});

describe('a service', () => {
  it.each(['orders-api', 'relay', 'inventory-worker'] as const)(
    '%s ends in order within its time on SIGTERM',
    async (name) => {
      const program = start(name, { SHUTDOWN_MS: '5000' });
      await untilReady(program);
      const asked = performance.now();
      program.signal('SIGTERM');
      const { exit, stdout } = await program.ended;
      expect(exit, stdout).toBe(0);
      expect(performance.now() - asked).toBeLessThan(6_000);
    },
  );

  it.each(['orders-api', 'relay', 'inventory-worker'] as const)(
    '%s names every setting that is not usable, and shows no secret',
    async (name) => {
      const settings = {
        MONGODB_URI: 'mongo://user:hunter22@db',
        ROCKETMQ_ENDPOINTS: 'nowhere',
        LOG_LEVEL: 'loud',
        SHUTDOWN_MS: '5s',
      };
      const { exit, stdout, stderr } = await start(name, settings).ended;
      expect(exit).toBe(1);
      for (const variable of ['MONGODB_URI', 'LOG_LEVEL', 'SHUTDOWN_MS']) expect(stderr).toContain(variable);
      expect(stdout + stderr).not.toContain('hunter22');
    },
  );

  it.each(['orders-api', 'relay', 'inventory-worker'] as const)('%s prints its settings with --help', async (name) => {
    const program = runService(name, {}, ['--help']);
    running.push(program);
    const { exit, stdout } = await program.ended;
    expect(exit).toBe(0);
    for (const { name: variable } of Object.values(createInventoryWorker().config).slice(0, 5))
      expect(stdout).toContain(variable);
  });

  it.each([
    ['relay', { TOPICS: 'no-such-topic' }, 'NP_PREFLIGHT_TOPIC_MISSING'],
    ['inventory-worker', { GROUP: 'no-such-group' }, 'NP_PREFLIGHT_GROUP_MISSING'],
    ['inventory-worker', { TOPIC: 'no-such-topic' }, 'NP_PREFLIGHT_TOPIC_MISSING'],
  ] as const)('%s with %o refuses to start, with the command that mends it', async (name, settings, code) => {
    const { exit, stdout } = await start(name, settings).ended;
    expect(exit, stdout).toBe(1);
    expect(stdout).toContain(code);
    expect(stdout).toContain('mqadmin update');
  });
});
