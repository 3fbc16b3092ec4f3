import { CONSUMER_COLLECTIONS, createOutboxActions, type InboxDocument } from '@nightporter/mongo';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { uniqueName } from '../../support/stack.js';
import { postJson } from '../support/orders-load.js';
import { createRelayWorld } from '../support/relay-world.js';
import { startOwnRocketMq } from '../support/servers.js';
import { sized } from '../support/size.js';

/** Two events of each order. */
const ORDERS = sized({ full: 499, small: 99 });
const EVENTS = 2 * ORDERS + 2;
/** Far below what `emit()` takes, so that the broker itself refuses an event that the outbox has accepted. */
const BROKER_BYTES_MAX = 16_384;
const TOPIC = 'orders-events';
/** An order of about 24 kB. */
const LARGE = Array.from({ length: 100 }, (_, n) => `product ${n} `.padEnd(190, 'x'));
const CLIENTS = 8;
/** What a busy machine makes of the database is not asked here. */
const COMMAND_MS = '25000';
/** For what has no time of its own to keep to. */
const LIMIT_MS = sized({ full: 600_000, small: 60_000 });

const cleanUp: (() => Promise<void>)[] = [];

beforeAll(() => {
  buildPrograms('services/orders-api', 'services/relay', 'services/inventory-worker');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('An event that the broker refuses for good holds back its own aggregate alone, and once skipped frees it, for consumers too', async (context) => {
  const { rocketmq, servers } = await startOwnRocketMq({ brokerSettings: { maxMessageSize: BROKER_BYTES_MAX } });
  cleanUp.push(() => rocketmq.stop());
  const world = await createRelayWorld({ servers, topics: [{ name: TOPIC }] });
  cleanUp.push(() => world.close());
  const [inventory, group] = [uniqueName('inventory'), uniqueName('group')];
  await servers.createGroup({ name: group, topics: [TOPIC] });
  const programs = [
    world.startService('orders-api', { MONGODB_DB: world.database, COMMAND_MS }),
    world.startRelay(),
    world.startService('inventory-worker', {
      MONGODB_DB: inventory,
      ORDERS_DB: world.database,
      GROUP: group,
      STOCK: 'apple=100000',
    }),
  ];
  const [api = '', relay = ''] = await Promise.all(programs.map(untilReady));

  const half = Math.floor(ORDERS / 2);
  await placeAndCancel(api, half, ['apple']);
  const [poison = ''] = await placeAndCancel(api, 1, LARGE);
  await placeAndCancel(api, ORDERS - half, ['apple']);

  const rows = () => world.rows.find({ aggregateId: poison }, { sort: { aggregateVersion: 1 } }).toArray();
  await until('the event is dead', async () => (await rows())[0]?.status === 'DEAD', 2 * LIMIT_MS);
  await world.untilPublished(EVENTS - 2, LIMIT_MS);
  const inbox = world.client.db(inventory).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  await until('the group has settled the others', async () => (await inbox.countDocuments()) === EVENTS - 2, LIMIT_MS);
  await until('the relay is ready', async () => (await fetch(`${relay}/readyz`)).ok);
  const waiting = await rows();

  const skippedMs = performance.now();
  const request = { namespace: world.namespace, by: 'proof', reason: 'too large for the broker' };
  const outcome = await createOutboxActions(world.client).skip({ ...request, eventId: waiting[0]!._id });
  await world.untilPublished(EVENTS, LIMIT_MS);
  await until('the group has settled all', async () => (await inbox.countDocuments()) === EVENTS, LIMIT_MS);
  const freedMs = performance.now() - skippedMs;
  const settled = await inbox.find({ eventId: { $in: waiting.map(({ _id }) => _id) } }).toArray();
  const { violations, counts } = await world.judge();
  showFigures(context, {
    events: EVENTS,
    attemptsAtThePoison: waiting[0]?.retryCount ?? 0,
    heldBack: waiting.length,
    flowedMeanwhile: EVENTS - waiting.length,
    freedMs: Math.round(freedMs),
    ...counts,
  });
  expect(violations).toEqual([]);
  expect(waiting.map(({ status }) => status)).toEqual(['DEAD', 'PENDING']);
  expect(outcome.kind).toBe('done');
  expect(settled.find(({ version }) => version === 1)?.outcome).toBe('skipped');
  expect(settled).toHaveLength(2);
});

/** Two events of each order; returns the orders' ids. */
async function placeAndCancel(api: string, count: number, products: readonly string[]): Promise<readonly string[]> {
  const lines = products.map((productId) => ({ productId, quantity: 1, unitPriceMinor: 10 }));
  const ids: string[] = [];
  let left = count;
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const { answer } = await postJson(`${api}/orders`, { customerId: 'c', currency: 'EUR', lines });
      const cancelled = await postJson(`${api}/orders/${String(answer['orderId'])}/cancel`, { reason: 'too late' });
      if (cancelled.status >= 300) throw new Error(`a cancellation was answered with ${cancelled.status}`);
      ids.push(String(answer['orderId']));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return ids;
}
