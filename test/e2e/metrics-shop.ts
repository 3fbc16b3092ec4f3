import { HTTP_METRICS } from '@nightporter/http';
import { CONSUMER_COLLECTIONS } from '@nightporter/mongo';
import { DELIVERY_METRICS } from '@nightporter/notification-worker';
import { RELAY_METRICS } from '@nightporter/relay-service';
import { PROCESS_METRICS, type MetricTable } from '@nightporter/runtime';
import { LANDER_METRICS } from '@nightporter/warehouse-worker';
import { CONSUMER_METRICS } from '@nightporter/worker';
import type { MongoClient } from 'mongodb';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { Scrapes } from './metrics-scrapes.js';
import { buildPrograms, runService, until, untilReady, type Program, type ServiceName } from './programs.js';

export const ORDERS = 3;

/** What each group reads. */
const READS = {
  inventory: ['orders-events'],
  points: ['orders-events'],
  notification: ['orders-events'],
  shipping: ['inventory-events'],
  orders: ['inventory-events', 'shipping-events'],
  warehouse: ['orders-events', 'inventory-events', 'shipping-events'],
} as const;
export type Group = keyof typeof READS;
export const GROUPS = Object.keys(READS) as readonly Group[];
const PRODUCERS = { orders: 'orders-events', inventory: 'inventory-events', shipping: 'shipping-events' } as const;
type Producer = keyof typeof PRODUCERS;
const PRODUCER_NAMES = Object.keys(PRODUCERS) as readonly Producer[];

/** Every service, and what it registers beside what every process does. */
export const TABLES: Readonly<Record<ServiceName, MetricTable>> = {
  'orders-api': HTTP_METRICS,
  relay: RELAY_METRICS,
  'inventory-worker': CONSUMER_METRICS,
  'orders-worker': CONSUMER_METRICS,
  'points-worker': CONSUMER_METRICS,
  'shipping-worker': CONSUMER_METRICS,
  'notification-worker': { ...CONSUMER_METRICS, ...DELIVERY_METRICS },
  'warehouse-worker': { ...CONSUMER_METRICS, ...LANDER_METRICS },
  console: HTTP_METRICS,
};
export const SERVICES = Object.keys(TABLES) as readonly ServiceName[];

export interface MetricsShop {
  readonly scrapes: Scrapes;
  readonly groups: Readonly<Record<Group, string>>;
  readonly databases: Readonly<Record<Group | 'relay', string>>;
  /** Events of a topic that were committed. */
  committed(producer: Producer): Promise<number>;
  /** Ends a process as a crash does. */
  kill(name: ServiceName): Promise<void>;
  /** Creates an order that nobody pays. */
  order(orderId: string): Promise<void>;
  stop(): Promise<void>;
}

/** The whole shop in processes of their own, after a few orders that were paid and completed, and what each answers to a scrape then. */
export async function startMetricsShop(client: MongoClient): Promise<MetricsShop> {
  buildPrograms(...SERVICES.map((name) => `services/${name}`));
  const databases = {} as Record<Group | 'relay', string>;
  const groups = {} as Record<Group, string>;
  for (const name of [...GROUPS, 'relay'] as const) databases[name] = uniqueName(name.slice(0, 1));
  for (const topic of Object.values(PRODUCERS)) await createTopic({ name: topic });
  for (const group of GROUPS)
    groups[group] = await createGroup({ name: uniqueName(group.slice(0, 1)), topics: [...READS[group]] });
  const folder = mkdtempSync(join(tmpdir(), 'nightporter-'));
  const running = new Map<ServiceName, Program>();
  const start = (name: ServiceName): Promise<string> => {
    const program = runService(name, settingsOf(name, { databases, groups, folder }));
    running.set(name, program);
    return untilReady(program);
  };
  const stop = async (): Promise<void> => {
    await Promise.all([...running.values()].map((program) => program.destroy()));
    rmSync(folder, { recursive: true, force: true });
  };
  const rows = (producer: Producer, filter: object = {}) =>
    client.db(databases[producer]).collection('outbox').countDocuments(filter);
  try {
    const urls = new Map(
      await Promise.all(SERVICES.map(async (name): Promise<[ServiceName, string]> => [name, await start(name)])),
    );
    await completeOrders(urls.get('orders-api')!, client.db(databases.orders).collection('orders'));
    await fetch(`${urls.get('console')!}/v1/groups`, { signal: AbortSignal.timeout(30_000) });
    const settledIn = async (group: Group): Promise<boolean> => {
      const inbox = client.db(databases[group]).collection(CONSUMER_COLLECTIONS.inbox);
      const read = PRODUCER_NAMES.filter((name) => (READS[group] as readonly string[]).includes(PRODUCERS[name]));
      const published = await Promise.all(read.map((producer) => rows(producer, { status: 'PUBLISHED' })));
      const total = published.reduce((sum, count) => sum + count, 0);
      return total > 0 && (await inbox.countDocuments({ group: groups[group] })) === total;
    };
    const scrapes = new Scrapes(urls, TABLES, PROCESS_METRICS);
    // What is read on a schedule, and what was marked last, shows a little later.
    await until('everything that happened is seen in every process', async () => {
      const isAtRest = (await Promise.all(GROUPS.map(settledIn))).every(Boolean);
      await scrapes.read();
      const unpublished = scrapes.valueOf('relay', 'nightporter_outbox_events', {});
      const unseen = SERVICES.flatMap((service) => scrapes.unseen(service).map((name) => `${service}: ${name}`));
      if (!isAtRest || unpublished > 0 || unseen.length > 0)
        throw new Error(
          `settled everywhere: ${String(isAtRest)}, unpublished: ${unpublished}, unseen: ${unseen.join()}`,
        );
      return true;
    });
    return {
      scrapes,
      groups,
      databases,
      committed: (producer) => rows(producer),
      kill: async (name) => running.get(name)?.destroy(),
      order: (orderId) => post(`${urls.get('orders-api')!}/orders`, orderOf(orderId)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function settingsOf(
  name: ServiceName,
  shop: Pick<MetricsShop, 'databases' | 'groups'> & { readonly folder: string },
): Record<string, string> {
  const { databases, folder, groups } = shop;
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const shared = { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints };
  if (name === 'orders-api') return { MONGODB_URI: mongodbUri, MONGODB_DB: databases.orders };
  const producers = PRODUCER_NAMES.map((producer) => databases[producer]);
  if (name === 'console')
    return { MONGODB_URI: mongodbUri, PRODUCER_DBS: producers.join(','), RELAY_DB: databases.relay };
  if (name === 'relay') {
    const OUTBOX_NAMESPACES = producers.map((database) => `${database}.outbox`).join(',');
    return { ...shared, MONGODB_DB: databases.relay, OUTBOX_NAMESPACES, LEASE_MS: '7000', SHARDS: '2' };
  }
  const group = name.slice(0, -'-worker'.length) as Group;
  return {
    ...shared,
    MONGODB_DB: databases[group],
    GROUP: groups[group],
    ORDERS_DB: databases.orders,
    INVENTORY_DB: databases.inventory,
    SHIPPING_DB: databases.shipping,
    ...(name === 'inventory-worker' ? { STOCK: 'apple=1000' } : {}),
    ...(name === 'warehouse-worker' ? { WAREHOUSE_FOLDER: folder } : {}),
  };
}

function orderOf(orderId: string): object {
  const lines = [{ productId: 'apple', quantity: 1, unitPriceMinor: 250 }];
  return { orderId, customerId: 'ada', currency: 'EUR', lines };
}

async function completeOrders(api: string, orders: { countDocuments(filter: object): Promise<number> }): Promise<void> {
  for (let index = 0; index < ORDERS; index += 1) {
    const orderId = `order-${index}`;
    await post(`${api}/orders`, orderOf(orderId));
    const paid = { orderId, paymentTransactionNo: `payment-${index}`, amountMinor: 250, currency: 'EUR' };
    await post(`${api}/payments/callback`, paid);
  }
  const areCompleted = async (): Promise<boolean> => (await orders.countDocuments({ status: 'COMPLETED' })) === ORDERS;
  await until('the orders are completed', areCompleted);
}

async function post(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${await response.text()}`);
}
