import { reconcile, readWarehouse, type Reconciliation } from '@nightporter/cli';
import type { OutboxDocument } from '@nightporter/contracts';
import { startMongo } from '@nightporter/embedded';
import { CONSUMER_COLLECTIONS, connectMongo, OUTBOX_COLLECTIONS, type ParkedDocument } from '@nightporter/mongo';
import { notificationCollections } from '@nightporter/notification-worker';
import { receiveWebhooks, type WebhookReceiver } from '@nightporter/testing/receivers';
import { createWarehouseFolder, readManifest, warehouseCollections } from '@nightporter/warehouse-worker';
import type { MongoClient } from 'mongodb';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGroup, createTopic, sharedStack, uniqueName } from '../../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program, type ServiceName } from '../../e2e/programs.js';

const TOPICS = ['orders-events', 'inventory-events', 'shipping-events'];
const PRODUCERS = ['orders', 'inventory', 'shipping'];

/** The workers of the shop, each with its database, and the topics that it reads. A new worker is one more line here. */
const SHOP_WORKERS = {
  'inventory-worker': { database: 'inventory', topics: ['orders-events'] },
  'notification-worker': { database: 'notification', topics: ['orders-events'] },
  'orders-worker': { database: 'orders', topics: ['inventory-events', 'shipping-events'] },
  'points-worker': { database: 'points', topics: ['orders-events'] },
  'shipping-worker': { database: 'shipping', topics: ['inventory-events'] },
  'warehouse-worker': { database: 'warehouse', topics: TOPICS },
} as const satisfies Partial<Record<ServiceName, { database: string; topics: readonly string[] }>>;

export type ShopWorker = keyof typeof SHOP_WORKERS;
export type ShopService = 'orders-api' | 'relay' | ShopWorker;
export const WORKERS = Object.keys(SHOP_WORKERS) as readonly ShopWorker[];

export interface ShopOptions {
  /** Pieces to put on the shelf. */
  readonly stock: ReadonlyMap<string, number>;
  /** Default: all. Groups of others are not waited for. */
  readonly workers?: readonly ShopWorker[];
}

/** The whole shop on a MongoDB of its own, and the broker that all share. */
export interface ShopWorld {
  readonly client: MongoClient;
  /** Of the API, the same over its restarts. */
  readonly apiUrl: string;
  /** Of the files of the warehouse. */
  readonly warehouseFolder: string;
  /** Where customers are told. */
  readonly receiver: WebhookReceiver;
  /** Settings that a service of this name gets here. */
  settingsOf(name: ShopService): Record<string, string>;
  /** Starts it, or starts it again; resolves once it is ready. */
  start(name: ShopService): Promise<void>;
  /** Whoever starts a program by itself leaves its end to the world. */
  adopt(program: Program): Program;
  /** SIGKILL; resolves once it is gone. */
  kill(name: ShopService): Promise<void>;
  /** Waits until everything is published, settled in every group, told and landed. */
  untilAtRest(limitMs: number): Promise<void>;
  reconciled(): Promise<Reconciliation>;
  /** Every event of the shop, as its producers wrote it. */
  committed(): Promise<readonly OutboxDocument[]>;
  close(): Promise<void>;
}

export async function openShopWorld({ stock, workers = WORKERS }: ShopOptions): Promise<ShopWorld> {
  buildPrograms('services/cli', 'services/relay', ...WORKERS.map((name) => `services/${name}`));
  const mongodb = await startMongo({
    // The transactions that a killed worker left open hold their documents until the server gives them up: after 60 s by default. Much
    // less, and a busy machine gives up those of the living: each costs an attempt, and the waits between these make the rest late.
    parameters: { transactionLifetimeLimitSeconds: '20' },
    environment: { ...process.env, MONGODB_URI: '' },
  });
  const client = await connectMongo({ uri: mongodb.uri });
  // Topics have the names of the catalogue; groups of our own read what comes from now on.
  for (const name of TOPICS) await createTopic({ name });
  const groupOf = new Map<ShopService, string>();
  for (const worker of workers)
    groupOf.set(worker, await createGroup({ name: uniqueName(worker), topics: [...SHOP_WORKERS[worker].topics] }));
  const warehouseFolder = await mkdtemp(join(tmpdir(), 'nightporter-warehouse-'));
  const receiver = await receiveWebhooks(() => 200);
  const apiPort = await freePort();
  const running = new Map<ShopService, Program>();
  const adopted: Program[] = [];
  const outboxes = PRODUCERS.map((name) => client.db(name).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox));

  function settingsOf(name: ShopService): Record<string, string> {
    const shared = {
      MONGODB_URI: mongodb.uri,
      ROCKETMQ_ENDPOINTS: sharedStack().rocketmqEndpoints,
      INVISIBLE_MS: '3000',
      GROUP: groupOf.get(name) ?? '',
    };
    switch (name) {
      case 'orders-api':
        return { ...shared, PORT: String(apiPort) };
      case 'relay': {
        const namespaces = PRODUCERS.map((producer) => `${producer}.${OUTBOX_COLLECTIONS.outbox}`).join(',');
        // As short as a send allows.
        return {
          ...shared,
          MONGODB_DB: 'relay',
          OUTBOX_NAMESPACES: namespaces,
          TOPICS: TOPICS.join(','),
          LEASE_MS: '7000',
        };
      }
      case 'inventory-worker':
        return { ...shared, STOCK: [...stock].map(([productId, quantity]) => `${productId}=${quantity}`).join(',') };
      case 'notification-worker':
        // What a killed worker was sending is free again soon.
        return {
          ...shared,
          CHANNELS: 'webhook',
          WEBHOOK_URL: receiver.url,
          SEND_TIMEOUT_MS: '2000',
          DELIVERY_CLAIM_MS: '3000',
          DELIVERY_POLL_MS: '100',
        };
      case 'warehouse-worker':
        // Merges come soon, so that kills meet them.
        return {
          ...shared,
          WAREHOUSE_FOLDER: warehouseFolder,
          LANDER_LEASE_MS: '3000',
          COMPACT_FILES_MIN: '3',
          LAND_EVERY_MS: '200',
        };
      case 'orders-worker':
      case 'points-worker':
      case 'shipping-worker':
        return shared;
    }
  }

  /** Whatever is known at once comes first: to count all events is work for the server that the shop waits for. */
  async function rest(): Promise<string | null> {
    for (const name of workers) {
      const parked = client.db(SHOP_WORKERS[name].database).collection(CONSUMER_COLLECTIONS.parked);
      const waits = await parked.findOne({ group: groupOf.get(name) }, { projection: { _id: 1 } });
      if (waits !== null) return `parked by ${name}: ${await parkedOf(name)}`;
    }
    const settled = await Promise.all(
      workers.map(async (name) => {
        const { database, topics } = SHOP_WORKERS[name];
        const inbox = client.db(database).collection(CONSUMER_COLLECTIONS.inbox);
        return { name, topics, count: await inbox.countDocuments({ group: groupOf.get(name) }) };
      }),
    );
    // Counted after what is settled, so that what is settled then cannot have led to more.
    const byTopic = new Map<string, number>();
    for (const outbox of outboxes) {
      const unpublished = await outbox.countDocuments({ unsettled: true });
      if (unpublished > 0) return `${unpublished} events to publish`;
      for (const topic of TOPICS)
        byTopic.set(topic, (byTopic.get(topic) ?? 0) + (await outbox.countDocuments({ topic })));
    }
    for (const { count, name, topics } of settled) {
      const events = topics.reduce((sum, topic) => sum + (byTopic.get(topic) ?? 0), 0);
      if (count !== events) return `${count} of ${events} events settled by ${name}`;
    }
    const untold = await notificationCollections(client.db('notification')).notifications.countDocuments({
      state: { $ne: 'sent' },
    });
    if (untold > 0) return `${untold} notifications to send`;
    return workers.includes('warehouse-worker') ? unlanded() : null;
  }

  /** What keeps a worker from its rest: how many events, in which state, after how many attempts, with which failure, and due in how many seconds at most. */
  async function parkedOf(name: ShopWorker): Promise<string> {
    const parked = client.db(SHOP_WORKERS[name].database).collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
    const projection = { state: 1, attempts: 1, 'failure.code': 1, nextRetryAt: 1 };
    const rows = await parked.find({ group: groupOf.get(name) ?? '' }, { projection }).toArray();
    const kinds = new Map<string, { events: number; dueInS: number | null }>();
    for (const { attempts, failure, nextRetryAt, state } of rows) {
      const kind = [state, `after ${attempts}`, failure?.code ?? 'not failed'].join(', ');
      const { dueInS, events } = kinds.get(kind) ?? { events: 0, dueInS: null };
      const due = nextRetryAt === null ? null : Math.round((nextRetryAt.getTime() - Date.now()) / 1_000);
      kinds.set(kind, { events: events + 1, dueInS: due === null ? dueInS : Math.max(due, dueInS ?? due) });
    }
    return JSON.stringify(Object.fromEntries(kinds));
  }

  async function unlanded(): Promise<string | null> {
    const { lander, staged } = warehouseCollections(client.db('warehouse'));
    const waiting = await staged.countDocuments();
    if (waiting > 0) return `${waiting} events to land`;
    const { revision = 0 } = (await lander.findOne({})) ?? {};
    const published = (await readManifest(createWarehouseFolder(warehouseFolder)))?.revision;
    return published === revision ? null : `manifest ${published ?? 0} of ${revision} is published`;
  }

  return {
    client,
    apiUrl: `http://127.0.0.1:${apiPort}`,
    warehouseFolder,
    receiver,
    settingsOf,
    async start(name) {
      const program = runService(name, settingsOf(name));
      running.set(name, program);
      adopted.push(program);
      await untilReady(program);
    },
    adopt(program) {
      adopted.push(program);
      return program;
    },
    async kill(name) {
      await running.get(name)?.destroy();
    },
    untilAtRest: (limitMs) =>
      until(
        'everything is published, settled and landed',
        async () => {
          const missing = await rest();
          if (missing === null) return true;
          throw new Error(missing);
        },
        limitMs,
      ),
    async reconciled() {
      const databases = {
        orders: 'orders',
        inventory: 'inventory',
        shipping: 'shipping',
        points: 'points',
        notification: 'notification',
        warehouse: 'warehouse',
      };
      const groups = {
        orders: groupOf.get('orders-worker') ?? '',
        inventory: groupOf.get('inventory-worker') ?? '',
        shipping: groupOf.get('shipping-worker') ?? '',
        points: groupOf.get('points-worker') ?? '',
        notification: groupOf.get('notification-worker') ?? '',
        warehouse: groupOf.get('warehouse-worker') ?? '',
      };
      const warehouse = await readWarehouse(client, { database: 'warehouse', folder: warehouseFolder });
      const until = new Date(Date.now() + 60_000);
      return reconcile({ client, databases, groups, since: null, until, warehouse });
    },
    async committed() {
      return (await Promise.all(outboxes.map((outbox) => outbox.find().toArray()))).flat();
    },
    async close() {
      await Promise.all(adopted.splice(0).map((program) => program.destroy()));
      await client.close();
      await receiver.close();
      await mongodb.stop();
      await rm(warehouseFolder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
