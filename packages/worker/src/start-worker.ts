import { createConsumer, type Consumer, type DeadLetterSender } from '@nightporter/consumer';
import type { EventDefinition } from '@nightporter/contracts';
import {
  closeMongo,
  connectMongo,
  createAges,
  createGroupStats,
  createGroupStores,
  engineOf,
  ensureConsumerCollections,
  ensureOutboxCollections,
} from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { brokerGroup, groupId, isNightporterError } from '@nightporter/protocol';
import {
  createDeadLetterSender,
  createDeadLetterSubscriber,
  deadLetterTopic,
  createSubscriber,
  preflightGroup,
  preflightTopic,
  type RocketmqSubscriber,
} from '@nightporter/rocketmq';
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
  type SettingTable,
} from '@nightporter/runtime';
import type { ClientSession, MongoClient } from 'mongodb';
import type { Companion } from './companion.js';
import type { ConsumerDefinition, WorkerParts, WorkerResources } from './define-consumer.js';
import { engineHandlers } from './handlers.js';
import { createConsumerMetrics } from './metrics.js';
import { createConsumerObserver } from './observer.js';
import { registerWithProducers } from './producers.js';
import { resolveSubscriptions, type ResolvedSubscription, type WorkerSettings } from './settings.js';

/** Of the time for stopping, the share of the work in hand, and of the connections to the broker. */
const DRAIN_SHARE = 0.6;
const CLOSE_SHARE = 0.3;
/** And of the connections to the database, which go last. */
const LAST_SHARE = 0.05;

const HOUR_MS = 60 * 60 * 1_000;

/** What a start has opened so far, closed in the reverse order. */
type Opened = (() => Promise<void>)[];

export async function startWorker<Events extends readonly EventDefinition[], Own extends SettingTable>(
  definition: ConsumerDefinition<Events, Own>,
  context: ServiceContext<ConfigOf<WorkerSettings & Own>>,
  parts: WorkerParts,
): Promise<RunningService> {
  const opened: Opened = [];
  const close = async (): Promise<void> => {
    for (const closing of opened.splice(0).reverse()) await closing();
  };
  try {
    const { consumer, companion } = await open(definition, context, { ...parts, opened });
    const ended = companion === null ? consumer.run() : Promise.race([consumer.run(), companion.run()]);
    return { ended, stop: close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function open<Events extends readonly EventDefinition[], Own extends SettingTable>(
  definition: ConsumerDefinition<Events, Own>,
  context: ServiceContext<ConfigOf<WorkerSettings & Own>>,
  { opened, storeOf = (store) => store }: WorkerParts & { opened: Opened },
): Promise<{ readonly consumer: Consumer; readonly companion: Companion | null }> {
  const { catalogue, handlers, prepare, source } = definition;
  const { logger, signal } = context;
  // The table has these settings by its type; the mapped type of a generic table cannot show it.
  const config = context.config as ConfigOf<WorkerSettings>;
  const subscriptions = resolveSubscriptions(definition.subscriptions, context.config);
  const connection = brokerConnection(config, logger);
  const client = await connectMongo({ uri: config.mongodbUri, appName: definition.name });
  const observer = createConsumerObserver(logger, systemClock);
  let consumer: Consumer | null = null;
  let companion: Companion | null = null;
  const told = observation({
    name: definition.name,
    config,
    client,
    subscriptions,
    consumer: () => consumer,
    companion: () => companion,
    outage: observer.outage,
  });
  const health = await createHealthServer({ host: config.host, port: config.port, ...told.served });
  opened.push(
    () => health.close(),
    () => closeMongo(client, config.shutdownMs * LAST_SHARE),
  );
  logger.info({ port: health.port, ...(await engineOf(client)) }, 'answering health checks');
  const database = config.mongodbDatabase;
  const resources: WorkerResources<Own> = {
    client,
    database: client.db(database),
    config: context.config,
    logger,
  };
  const engine = engineHandlers(typeof handlers === 'function' ? handlers(resources) : handlers, {
    catalogue,
    topics: definition.subscriptions.map(({ topic }) => topic),
    logger,
    handlerRan: told.handlerRan,
  });
  await ensureConsumerCollections(client, database);
  await ensureOutboxCollections(client, database);
  await prepare?.(resources);
  for (const subscription of subscriptions) {
    await preflight(subscription.topic, {
      group: brokerGroup(groupId(config.group)),
      context: { logger, signal },
      connection,
      copyTopic: config.copiesDeadLetters ? deadLetterTopic(subscription.topic) : null,
    });
  }
  const { archiveFolder, from, unavailable } = config;
  const registration = { client, group: config.group, database, from, unavailable, archiveFolder };
  const producers = await registerWithProducers(registration, subscriptions);
  await told.registered();
  const filter = definition.duplicateFilter?.(resources);
  opened.push(async () => filter?.close?.());
  const drainMs = Math.max(50, Math.floor(config.shutdownMs * DRAIN_SHARE));
  const inboxRetentionMs = config.inboxRetentionDays * 24 * HOUR_MS;
  const { copiesDeadLetters } = config;
  const stores = createGroupStores({ client, database, group: config.group, inboxRetentionMs, copiesDeadLetters });
  consumer = createConsumer<ClientSession>(
    {
      ...(await subscribe(subscriptions, { config, connection, opened })),
      store: storeOf(stores.store),
      parked: stores.parked,
      started: stores.started,
      ...(filter === undefined ? {} : { duplicates: { filter, repeats: stores.repeats } }),
      ledgerSweep: { gaps: stores.gaps, producers },
      ...(copiesDeadLetters
        ? {
            deadLetterCopies: {
              copies: stores.copies,
              sender: copySender(subscriptions, { config, connection, opened }),
            },
          }
        : {}),
      emitter: createOutbox({ client, database, source, catalogue }).emitter(),
      clock: systemClock,
      random: systemRandom,
      observe: (event) => {
        observer.observe(event);
        told.observe(event);
      },
    },
    {
      ...definition.tuning,
      group: groupId(config.group),
      handlers: engine,
      read: (envelope) => catalogue.read(envelope),
      receiveLoops: config.receiveLoops,
      receiveMax: config.receiveMax,
      commitMax: config.commitMax,
      invisibleMs: config.invisibleMs,
      attemptsMax: config.attemptsMax,
      ledgerEveryMs: config.ledgerEveryMs,
      ledgerLagMs: config.ledgerLagMs,
      gapWaitMs: config.gapWaitMs,
      inboxRetentionMs,
      brokerRetentionMs: config.brokerRetentionHours * HOUR_MS,
      drainMs,
    },
  );
  companion = definition.companion?.(resources, { drainMs }) ?? null;
  const started = { consumer, companion };
  // Together, since they share the time for stopping.
  opened.push(async () => {
    await Promise.all([started.consumer.stop(), started.companion?.stop()]);
  });
  return started;
}

interface Observed {
  readonly name: string;
  readonly config: ConfigOf<WorkerSettings>;
  readonly client: MongoClient;
  readonly subscriptions: readonly ResolvedSubscription[];
  readonly consumer: () => Consumer | null;
  readonly companion: () => Companion | null;
  readonly outage: () => string | null;
}

/** What a worker tells over HTTP, and what its metrics have to be told. */
function observation({ name, config, client, subscriptions, consumer, companion, outage }: Observed) {
  const { group, mongodbDatabase: database } = config;
  const checks = {
    database: async () => {
      await client.db(database).command({ ping: 1 });
      return null;
    },
    consumer: () => {
      const state = consumer()?.snapshot().state ?? null;
      if (state === null) return 'topic and group are being checked';
      return state === 'running' ? outage() : `is ${state}`;
    },
    companion: () => {
      const beside = companion();
      const reason = beside?.health() ?? null;
      return reason === null ? null : `${beside?.name ?? ''}: ${reason}`;
    },
  };
  // Where a producer is read over HTTP, its database and its clock are another cluster's.
  const own = subscriptions.filter(({ ledgerServer }) => ledgerServer === null);
  const producers = [...new Set(own.map(({ producerDatabase }) => producerDatabase))];
  const { metrics, ...recorders } = createConsumerMetrics({
    service: name,
    group,
    topics: subscriptions.map(({ topic }) => topic),
    producers,
    checks,
    snapshot: () => consumer()?.snapshot() ?? null,
    stats: createGroupStats({ client, database, group, producers }),
    ages: createAges(client),
    topicsOnOneClock: own.map(({ topic }) => topic),
    sloLatencyMs: config.sloLatencyMs,
  });
  const status = () => {
    const beside = companion();
    const snapshot = consumer()?.snapshot() ?? { state: 'preflight' };
    return beside === null ? snapshot : { ...snapshot, [beside.name]: beside.snapshot() };
  };
  return { ...recorders, served: { checks, metrics, status } };
}

/** One client per topic: the client's start-up can hang with several. */
async function subscribe(
  subscriptions: readonly ResolvedSubscription[],
  { config, connection, opened }: BrokerUse,
): Promise<{ subscribers: readonly RocketmqSubscriber[]; brokerDeadLetters: RocketmqSubscriber }> {
  const group = brokerGroup(groupId(config.group));
  const options = { ...connection, group, closeTimeoutMs: closeTimeoutMs(config) };
  const brokerDeadLetters = createDeadLetterSubscriber(options);
  const subscribers: RocketmqSubscriber[] = [];
  // Together, so that one more topic does not take more of the time for stopping.
  opened.push(async () => {
    await Promise.all([...subscribers, brokerDeadLetters].map((subscriber) => subscriber.close()));
  });
  for (const { topic } of subscriptions) subscribers.push(await createSubscriber({ ...options, topic }));
  return { subscribers, brokerDeadLetters };
}

interface BrokerUse {
  readonly config: ConfigOf<WorkerSettings>;
  readonly connection: BrokerConnection;
  readonly opened: Opened;
}

function copySender(
  subscriptions: readonly ResolvedSubscription[],
  { config, connection, opened }: BrokerUse,
): DeadLetterSender {
  const [first = '', ...others] = subscriptions.map(({ topic }) => topic);
  const sender = createDeadLetterSender({
    ...connection,
    topics: [first, ...others],
    closeTimeoutMs: closeTimeoutMs(config),
  });
  opened.push(() => sender.close());
  return sender;
}

function closeTimeoutMs({ shutdownMs }: ConfigOf<WorkerSettings>): number {
  return Math.max(100, Math.floor(shutdownMs * CLOSE_SHARE));
}

interface Preflight {
  readonly group: string;
  readonly context: Pick<ServiceContext<unknown>, 'logger' | 'signal'>;
  readonly connection: BrokerConnection;
  /** Where copies of dead letters go, if they do. */
  readonly copyTopic: string | null;
}

/** What is wrong ends the start with the command that mends it; a broker that does not answer is waited for. */
async function preflight(
  topic: string,
  { group, connection, context: { logger, signal }, copyTopic }: Preflight,
): Promise<void> {
  const facts = await untilAvailable(
    async () => ({
      ...(copyTopic === null ? {} : { copies: await preflightTopic({ ...connection, topic: copyTopic }) }),
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
