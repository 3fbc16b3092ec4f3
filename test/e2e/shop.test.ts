import { reconcile, type Reconciliation } from '@nightporter/cli';
import { inventoryCollections } from '@nightporter/inventory-worker';
import { connectMongo } from '@nightporter/mongo';
import { ordersCollections } from '@nightporter/orders-api';
import { pointsCollections } from '@nightporter/points-worker';
import { shipmentsOf } from '@nightporter/shipping-worker';
import type { MongoClient } from 'mongodb';
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startStack, type Stack } from '@nightporter/embedded';
import { builtFile, buildPrograms, runService, until, untilReady, type Program, type ServiceName } from './programs.js';

/** The whole shop on a stack of its own: topics and groups have the names of the catalogue. */
const TOPICS = ['orders-events', 'inventory-events', 'shipping-events'];
const NAMES = { orders: 'orders', inventory: 'inventory', shipping: 'shipping', points: 'points' };
const WORKERS = ['inventory-worker', 'orders-worker', 'points-worker', 'shipping-worker'] as const;
/** More orders than pieces, so that some find the shelf empty. */
const ORDERS = 20;
const STOCK = 14;

let stack: Stack;
let client: MongoClient;
const running: Program[] = [];

beforeEach(async () => {
  buildPrograms('services/relay', 'services/cli', ...WORKERS.map((name) => `services/${name}`));
  stack = await startStack({});
  client = await connectMongo({ uri: stack.mongodb.uri });
  for (const name of TOPICS) await stack.rocketmq.createTopic({ name });
  await stack.rocketmq.createGroup({ name: 'inventory', topics: ['orders-events'] });
  await stack.rocketmq.createGroup({ name: 'points', topics: ['orders-events'] });
  await stack.rocketmq.createGroup({ name: 'shipping', topics: ['inventory-events'] });
  await stack.rocketmq.createGroup({ name: 'orders', topics: ['inventory-events', 'shipping-events'] });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
  await client.close();
  await stack.stop();
});

function start(name: ServiceName): Program {
  const program = runService(name, {
    MONGODB_URI: stack.mongodb.uri,
    ROCKETMQ_ENDPOINTS: stack.rocketmq.endpoints,
    INVISIBLE_MS: '3000',
    LEASE_MS: '7000',
    OUTBOX_NAMESPACES: 'orders.outbox,inventory.outbox,shipping.outbox',
    TOPICS: TOPICS.join(','),
    ...(name === 'inventory-worker' ? { STOCK: `apple=${STOCK}` } : {}),
    ...(name === 'relay' ? { MONGODB_DB: 'relay' } : {}),
  });
  running.push(program);
  return program;
}

async function post(url: string, body: unknown): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** What a customer and the payment provider do with order `index`; every way of the story has its share. */
async function customer(api: string, index: number): Promise<void> {
  const orderId = `order ${index}`;
  const line = { productId: 'apple', quantity: 1, unitPriceMinor: 250 };
  const body = { orderId, customerId: `customer ${index % 5}`, currency: 'EUR', lines: [line] };
  expect((await post(`${api}/orders`, body)).status).toBe(201);
  const pay = () =>
    post(`${api}/payments/callback`, {
      orderId,
      paymentTransactionNo: `payment ${index}`,
      amountMinor: 250,
      currency: 'EUR',
    });
  const cancel = () => post(`${api}/orders/${encodeURIComponent(orderId)}/cancel`, { reason: 'changed my mind' });
  switch (index % 5) {
    case 0: // Pays, and the provider says so twice.
      await Promise.all([pay(), pay()]);
      return;
    case 1: // Cancels without paying.
      await cancel();
      return;
    case 2: // Pays and cancels, whichever comes first.
      await Promise.all([pay(), cancel()]);
      return;
    case 3: // Cancels, and the payment comes all the same.
      await cancel();
      expect((await pay()).status).toBe(200);
      return;
    default: // Pays later.
      await pay();
  }
}

function compared(): Promise<Reconciliation> {
  return reconcile({
    client,
    databases: NAMES,
    groups: NAMES,
    since: null,
    until: new Date(Date.now() + 60_000),
  });
}

async function untilReconciled(): Promise<Reconciliation> {
  let last = await compared();
  await until(
    'all services say the same',
    async () => {
      last = await compared();
      if (last.differencesTotal > 0) throw new Error(JSON.stringify(last.differences.slice(0, 3)));
      const { orders } = ordersCollections(client.db('orders'));
      // An order that is created, and neither paid nor cancelled, is at rest only once its stock was not short.
      return (await orders.countDocuments({ status: 'PAID' })) === 0;
    },
    90_000,
  );
  return last;
}

/** Pieces are conserved, no customer has points that no order brought, and exactly the refunds that the rules ask for are due. */
async function assertTheBooks(orders: number, result: Reconciliation): Promise<void> {
  expect(result).toMatchObject({ orders, differencesTotal: 0 });
  const apple = await inventoryCollections(client.db('inventory')).stock.findOne({ _id: 'apple' });
  expect(apple!.available + apple!.reserved + apple!.shipped).toBe(STOCK);
  expect(Math.min(apple!.available, apple!.reserved, apple!.shipped)).toBeGreaterThanOrEqual(0);
  const { orders: documents, payments, refunds } = ordersCollections(client.db('orders'));
  const completed = await documents.countDocuments({ status: 'COMPLETED' });
  expect(completed).toBeGreaterThan(0);
  expect(await shipmentsOf(client.db('shipping')).countDocuments({ state: 'delivered' })).toBe(completed);
  const balances = await pointsCollections(client.db('points')).accounts.find().toArray();
  // 250 minor units are two points.
  expect(balances.reduce((sum, { balance }) => sum + balance, 0)).toBe(2 * completed);
  // Whoever paid has the goods, or gets the money back.
  expect(await refunds.countDocuments()).toBe((await payments.countDocuments()) - completed);
  expect(result.refundsDue).toHaveLength(await refunds.countDocuments());
}

describe('the shop', () => {
  it('comes to rest with the same story in every service, whoever pays, cancels or finds nothing on the shelf', async () => {
    const [api] = await Promise.all([start('orders-api'), start('relay'), ...WORKERS.map(start)].map(untilReady));
    await Promise.all(Array.from({ length: ORDERS }, (_, index) => customer(api!, index)));
    await assertTheBooks(ORDERS, await untilReconciled());
  });

  it('is told apart by one command when a service lost an effect, with the order and the exit code', async () => {
    const [api] = await Promise.all([start('orders-api'), start('relay'), ...WORKERS.map(start)].map(untilReady));
    await customer(api!, 0);
    await untilReconciled();
    const command = (...more: readonly string[]) =>
      spawnSync(
        process.execPath,
        [
          builtFile('services/cli/dist/main.js'),
          'reconcile',
          '--mongodb-uri',
          stack.mongodb.uri,
          '--settle-seconds',
          '0',
          ...more,
        ],
        { encoding: 'utf8', timeout: 60_000 },
      );
    expect(command()).toMatchObject({
      status: 0,
      stdout: '1 orders compared: 0 differences, 0 refunds due\nnot compared: notifications, warehouse\n',
    });
    await pointsCollections(client.db('points')).awards.deleteOne({ _id: 'order 0' });
    await shipmentsOf(client.db('shipping')).deleteOne({ _id: 'order 0' });
    const found = command('--json');
    expect(found.status).toBe(1);
    const { differences } = JSON.parse(found.stdout) as Reconciliation;
    expect(differences.map(({ orderId, between }) => `${orderId ?? 'all'}: ${between}`)).toEqual([
      'order 0: stock and shipments',
      'order 0: orders and points',
      'all: points and awards',
    ]);
    expect(command('--since', 'yesterday')).toMatchObject({ status: 2 });
  });
});
