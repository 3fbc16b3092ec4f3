import { inventoryCollections } from '@nightporter/inventory-worker';
import { CONSUMER_COLLECTIONS, connectMongo, type GroupDocument, type InboxDocument } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startOwnMongo } from '../integration/mongo-own-server.js';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program, type ServiceName } from './programs.js';

const TOPIC = 'orders-events';
const LEDGER_TOKEN = 'a-token-for-ledgers-alone';
const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }] };

let client: MongoClient;
const running: Program[] = [];
const open: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  buildPrograms('services/orders-api', 'services/relay', 'services/inventory-worker', 'services/console');
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await createTopic({ name: TOPIC });
  await createTopic({ name: 'inventory-events' });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
  for (const close of open.splice(0).reverse()) await close();
});
afterAll(() => client.close());

function start(name: ServiceName, settings: Record<string, string>): Program {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const program = runService(name, { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints, ...settings });
  running.push(program);
  return program;
}

async function placeOrders(api: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${api}/orders`, { method: 'POST', headers, body: JSON.stringify(order) });
    expect(response.status).toBe(201);
  }
}

it('A worker on another database server, which knows its producer by the ops API alone, gets what the broker has lost, and moves its watermark', async () => {
  const [orders, inventory, group] = [uniqueName('o'), uniqueName('i'), uniqueName('g')];
  await createGroup({ name: group, topics: [TOPIC] });
  const own = await startOwnMongo();
  open.push(() => own.stop());
  const ownClient = await connectMongo({ uri: own.uri });
  open.push(() => ownClient.close());
  const [api = '', , ops = ''] = await Promise.all(
    [
      start('orders-api', { MONGODB_DB: orders }),
      start('relay', { MONGODB_DB: uniqueName('r'), OUTBOX_NAMESPACES: `${orders}.outbox` }),
      start('console', { PRODUCER_DBS: orders, OPS_TOKEN: 'a-token-for-operators', LEDGER_TOKEN }),
    ].map(untilReady),
  );
  await placeOrders(api, 5);
  const rows = client.db(orders).collection('outbox');
  await until('all is published', async () => (await rows.countDocuments({ status: 'PUBLISHED' })) === 5);
  // The group's offsets move past everything: the broker will never bring it.
  for (const { queueId, maxOffset } of await sharedStack().offsets({ topic: TOPIC, group })) {
    await sharedStack().rewind({ topic: TOPIC, group, queueId, offset: maxOffset });
  }
  const settings = {
    MONGODB_URI: own.uri,
    MONGODB_DB: inventory,
    ORDERS_DB: orders,
    ORDERS_LEDGER_URL: ops,
    GROUP: group,
    STOCK: 'apple=1000',
    LEDGER_SWEEP_EVERY_MS: '1000',
    LEDGER_LAG_MS: '1000',
  };
  const refused = start('inventory-worker', { ...settings, ORDERS_LEDGER_TOKEN: 'another-token-of-somebody' });
  expect((await refused.ended).exit).toBe(1);
  expect((await refused.ended).stdout).toContain('NP_CONFIG_INVALID');

  await untilReady(start('inventory-worker', { ...settings, ORDERS_LEDGER_TOKEN: LEDGER_TOKEN }));
  await placeOrders(api, 1);
  const inbox = ownClient.db(inventory).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  await until('all is settled', async () => (await inbox.countDocuments()) === 6);
  const { stock } = inventoryCollections(ownClient.db(inventory));
  expect(await stock.findOne({ _id: 'apple' })).toMatchObject({ available: 994, reserved: 6 });
  const [newest] = await rows.find().sort({ publishedAt: -1 }).limit(1).toArray();
  const groups = client.db(orders).collection<GroupDocument>('groups');
  await until('the watermark has passed all of it', async () => {
    const entry = await groups.findOne({ _id: group });
    return entry?.state === 'live' && entry.watermark >= (newest?.['publishedAt'] as Date);
  });
});
