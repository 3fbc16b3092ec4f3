import { createConsumer, type Consumer, type GroupStore } from '@nightporter/consumer';
import { ordersCatalogue } from '@nightporter/contracts';
import {
  connectMongo,
  createGroupStores,
  engineOf,
  ensureConsumerCollections,
  ensureOutboxCollections,
  registerGroup,
} from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { groupId, isNightporterError } from '@nightporter/protocol';
import { createSubscriber, preflightGroup, preflightTopic } from '@nightporter/rocketmq';
import {
  brokerConnection,
  createHealthServer,
  systemClock,
  systemRandom,
  untilAvailable,
  type BrokerConnection,
  type ConfigOf,
  type RunningService,
  type ServiceContext,
  type ServiceDefinition,
} from '@nightporter/runtime';
import type { ClientSession, MongoClient } from 'mongodb';
import { ensureInventoryCollections, inventoryCollections, seedStock } from './documents.js';
import { createInventoryHandlers } from './handlers.js';
import { createConsumerObserver } from './observer.js';
import { inventoryWorkerSettings, stockLineOf } from './settings.js';

/** Names this producer in every event; never to be changed. */
export const INVENTORY_SOURCE = 'inventory';

type WorkerContext = ServiceContext<ConfigOf<typeof inventoryWorkerSettings>>;

export interface WorkerParts {
  /** Stands between engine and database; tests put faults here. */
  readonly storeOf?: (store: GroupStore<ClientSession>) => GroupStore<ClientSession>;
}

/** The worker as a service. */
export function createInventoryWorker(parts: WorkerParts = {}): ServiceDefinition<typeof inventoryWorkerSettings> {
  return {
    name: 'inventory-worker',
    description: 'Reserves stock for orders and gives it back when they are cancelled.',
    config: inventoryWorkerSettings,
    start: (context) => start(context, parts),
  };
}

async function start(context: WorkerContext, { storeOf = (store) => store }: WorkerParts): Promise<RunningService> {
  const { config, logger } = context;
  const connection = brokerConnection(config, logger);
  const client = await connectMongo({ uri: config.mongodbUri, appName: 'inventory-worker' });
  const observer = createConsumerObserver(logger, systemClock);
  let consumer: Consumer | null = null;
  const health = await createHealthServer({
    host: config.host,
    port: config.port,
    checks: {
      database: async () => {
        await client.db(config.mongodbDatabase).command({ ping: 1 });
        return null;
      },
      consumer: () => {
        if (consumer === null) return 'topic and group are being checked';
        const { state } = consumer.snapshot();
        return state === 'running' ? observer.outage() : `is ${state}`;
      },
    },
    status: () => consumer?.snapshot() ?? { state: 'preflight' },
  });
  logger.info({ port: health.port, ...(await engineOf(client)) }, 'answering health checks');
  await prepareDatabase(client, config);
  await preflight(context, connection);
  await registerGroup(client, config.producerDatabase, { group: config.group, topics: [config.topic] });
  const subscriber = await createSubscriber({
    ...connection,
    group: config.group,
    topic: config.topic,
    closeTimeoutMs: Math.max(100, Math.floor(config.shutdownMs * 0.3)),
  });
  const stores = createGroupStores({ client, database: config.mongodbDatabase, group: config.group });
  const outbox = createOutbox({
    client,
    database: config.mongodbDatabase,
    source: INVENTORY_SOURCE,
    catalogue: ordersCatalogue,
  });
  const engine = createConsumer<ClientSession>(
    {
      subscribers: [subscriber],
      store: storeOf(stores.store),
      parked: stores.parked,
      started: stores.started,
      emitter: outbox.emitter(),
      clock: systemClock,
      random: systemRandom,
      observe: observer.observe,
    },
    {
      group: groupId(config.group),
      handlers: createInventoryHandlers(inventoryCollections(client.db(config.mongodbDatabase))),
      read: (envelope) => ordersCatalogue.read(envelope),
      receiveLoops: config.receiveLoops,
      receiveMax: config.receiveMax,
      invisibleMs: config.invisibleMs,
      attemptsMax: config.attemptsMax,
      drainMs: Math.max(50, Math.floor(config.shutdownMs * 0.6)),
    },
  );
  consumer = engine;
  return {
    ended: engine.run(),
    stop: async () => {
      await engine.stop();
      await subscriber.close();
      await client.close();
      await health.close();
    },
  };
}

async function prepareDatabase(client: MongoClient, config: WorkerContext['config']): Promise<void> {
  const database = config.mongodbDatabase;
  await ensureConsumerCollections(client, database);
  await ensureOutboxCollections(client, database);
  await ensureInventoryCollections(client, database);
  await seedStock(client, database, config.stock.map(stockLineOf));
  // The producer may not have started yet, and the group must be registered before its first event can be deleted.
  await ensureOutboxCollections(client, config.producerDatabase);
}

/** What is wrong ends the start with the command that mends it; a broker that does not answer is waited for. */
async function preflight({ config, logger, signal }: WorkerContext, connection: BrokerConnection): Promise<void> {
  const { group, topic } = config;
  const facts = await untilAvailable(
    async () => ({
      ...(await preflightTopic({ ...connection, topic })),
      ...(await preflightGroup({ ...connection, group, topic })),
    }),
    {
      clock: systemClock,
      signal,
      everyMs: 1_000,
      isOutage: (error) => isNightporterError(error, 'NP_BROKER_UNAVAILABLE'),
      waiting: (error) => {
        logger.warn({ group, topic, err: error }, 'broker unavailable; trying again');
      },
    },
  );
  logger.info(facts, 'topic and group checked');
}
