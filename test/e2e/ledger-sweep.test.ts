import type { OutboxDocument } from '@nightporter/contracts';
import { inventoryCollections } from '@nightporter/inventory-worker';
import { connectMongo, CONSUMER_COLLECTIONS, type GroupDocument, type InboxDocument } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program, type ServiceName } from './programs.js';

const TOPIC = 'orders-events';
const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }] };
const ORDERS = 5;

let client: MongoClient;
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
  await createGroup({ name: names.group, topics: [TOPIC] });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
});

function start(name: ServiceName, settings: Record<string, string>): Program {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const program = runService(name, { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints, ...settings });
  running.push(program);
  return program;
}

const startApi = () => start('orders-api', { MONGODB_DB: names.orders });
const startRelay = () => start('relay', { MONGODB_DB: names.relay, OUTBOX_NAMESPACES: `${names.orders}.outbox` });
const startWorker = (settings: Record<string, string> = {}) =>
  start('inventory-worker', {
    MONGODB_DB: names.inventory,
    ORDERS_DB: names.orders,
    GROUP: names.group,
    STOCK: 'apple=1000',
    LEDGER_SWEEP_EVERY_MS: '1000',
    LEDGER_LAG_MS: '1000',
    ...settings,
  });

async function post(url: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

/** Places orders and cancels them: two events each, and the stock shows whether they came in order. */
async function placeAndCancel(api: string, count = ORDERS): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const { orderId } = await post(`${api}/orders`, order);
    await post(`${api}/orders/${String(orderId)}/cancel`, { reason: 'too late' });
  }
}

const outbox = () => client.db(names.orders).collection<OutboxDocument>('outbox');
const inbox = () => client.db(names.inventory).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
const published = async () => outbox().countDocuments({ status: 'PUBLISHED' });

async function expectAllInOrder(events: number): Promise<void> {
  await until(`${events} events are settled`, async () => (await inbox().countDocuments()) === events, 15_000);
  const { movements, stock } = inventoryCollections(client.db(names.inventory));
  const moved = await movements.find({}, { sort: { orderId: 1, sequence: 1 } }).toArray();
  expect(moved.map(({ kind }) => kind)).toEqual(
    Array.from({ length: events }, (_, index) => (index % 2 === 0 ? 'reserved' : 'released')),
  );
  expect(await stock.findOne({ _id: 'apple' })).toMatchObject({ available: 1000, reserved: 0 });
}

describe('the ledger sweep', () => {
  it('brings within seconds, and in order, what the broker has lost for a group whose producers fell silent', async () => {
    const [api] = await Promise.all([startApi(), startRelay()].map(untilReady));
    await placeAndCancel(api!);
    await until('all is published', async () => (await published()) === 2 * ORDERS);
    // The group's offsets move past everything: dead-lettered, expired or skipped, the broker will never bring it.
    for (const { queueId, maxOffset } of await sharedStack().offsets({ topic: TOPIC, group: names.group })) {
      await sharedStack().rewind({ topic: TOPIC, group: names.group, queueId, offset: maxOffset });
    }
    await untilReady(startWorker());
    await expectAllInOrder(2 * ORDERS);
  });

  it('brings an event that is marked PUBLISHED, but was never sent, although nothing follows it', async () => {
    const api = await untilReady(startApi());
    await untilReady(startWorker());
    await placeAndCancel(api, 1);
    const now = new Date();
    await outbox().updateMany({}, { $set: { status: 'PUBLISHED', publishedAt: now }, $unset: { unsettled: true } });
    await expectAllInOrder(2);
  });

  it('gives a new group everything from the beginning, and one that starts now only what comes then', async () => {
    const [api] = await Promise.all([startApi(), startRelay()].map(untilReady));
    await placeAndCancel(api!);
    await until('all is published', async () => (await published()) === 2 * ORDERS);
    // A group that is new to the broker begins at the end of the topic.
    const late = uniqueName('late');
    await createGroup({ name: late, topics: [TOPIC] });
    const worker = startWorker({ GROUP: late });
    await untilReady(worker);
    await expectAllInOrder(2 * ORDERS);
    const groups = client.db(names.orders).collection<GroupDocument>('groups');
    await until('the group is live', async () => (await groups.findOne({ _id: late }))?.state === 'live', 15_000);

    const own = uniqueName('now');
    const group = uniqueName('now');
    await createGroup({ name: group, topics: [TOPIC] });
    await untilReady(startWorker({ GROUP: group, GROUP_FROM: 'now', MONGODB_DB: own }));
    await placeAndCancel(api!, 1);
    const settled = client.db(own).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
    await until('the new events are settled', async () => (await settled.countDocuments()) === 2, 15_000);
    await until(
      'the watermark has passed them',
      async () => ((await groups.findOne({ _id: group }))?.watermark ?? new Date(0)) > (await newestPublished()),
      15_000,
    );
    expect(await settled.countDocuments()).toBe(2);
  });
});

async function newestPublished(): Promise<Date> {
  const [newest] = await outbox().find({}).sort({ publishedAt: -1 }).limit(1).toArray();
  return newest?.publishedAt ?? new Date(0);
}
