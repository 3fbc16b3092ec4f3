import { openArchive } from '@nightporter/archive';
import { createConsumer, type Consumer } from '@nightporter/consumer';
import type { EventDefinition } from '@nightporter/contracts';
import {
  closeMongo,
  connectMongo,
  createGroupStores,
  engineOf,
  ensureConsumerCollections,
  ensureOutboxCollections,
  transactionLifetimeLimitMs,
} from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { brokerGroup, groupId } from '@nightporter/protocol';
import { deadLetterTopic } from '@nightporter/rocketmq';
import {
  brokerConnection,
  createHealthServer,
  systemClock,
  systemRandom,
  type ConfigOf,
  type RunningService,
  type ServiceContext,
  type SettingTable,
} from '@nightporter/runtime';
import type { ClientSession } from 'mongodb';
import { copySender, preflight, subscribe, type Opened } from './broker-side.js';
import type { Companion } from './companion.js';
import type { ConsumerDefinition, WorkerParts, WorkerResources } from './define-consumer.js';
import { engineHandlers } from './handlers.js';
import { observation } from './observation.js';
import { createConsumerObserver } from './observer.js';
import { createSweepHealth } from './sweep-health.js';
import { registerWithProducers } from './producers.js';
import { createConsumerTracer } from './tracer.js';
import { resolveSubscriptions, type WorkerSettings } from './settings.js';
import { shortLifetime } from './transaction-lifetime.js';

/** Of the time for stopping, the share of the work in hand. */
const DRAIN_SHARE = 0.6;
/** And of the connections to the database, which go last. */
const LAST_SHARE = 0.05;

const HOUR_MS = 60 * 60 * 1_000;

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
  { opened, portsOf = (ports) => ports, storeOf = (store) => store }: WorkerParts & { opened: Opened },
): Promise<{ readonly consumer: Consumer; readonly companion: Companion | null }> {
  const { catalogue, handlers, prepare, source } = definition;
  const { signal, tracing = null } = context;
  // The table has these settings by its type; the mapped type of a generic table cannot show it.
  const config = context.config as ConfigOf<WorkerSettings>;
  const logger = context.logger.child({ group: config.group });
  const subscriptions = resolveSubscriptions(definition.subscriptions, context.config);
  const connection = brokerConnection(config, logger);
  const client = await connectMongo({ uri: config.mongodbUri, appName: definition.name });
  const sweepHealth = createSweepHealth(systemClock, { sweepEveryMs: config.ledgerEveryMs });
  const observer = createConsumerObserver(logger, systemClock, sweepHealth);
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
    sweep: () => sweepHealth.reason(),
    tracing,
  });
  const health = await createHealthServer({ host: config.host, port: config.port, ...told.served });
  opened.push(
    () => health.close(),
    () => closeMongo(client, config.shutdownMs * LAST_SHARE),
  );
  logger.info({ port: health.port, ...(await engineOf(client)) }, 'answering health checks');
  const short = shortLifetime(await transactionLifetimeLimitMs(client), definition.tuning);
  if (short !== null) logger.warn(short, 'the database may end transactions before their time is up');
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
  const files = archiveFolder === null ? null : await openArchive(archiveFolder);
  const registration = { client, group: config.group, database, from, unavailable, files, logger };
  const producers = await registerWithProducers(registration, subscriptions);
  await told.registered();
  const filter = definition.duplicateFilter?.(resources);
  opened.push(async () => filter?.close?.());
  const drainMs = Math.max(50, Math.floor(config.shutdownMs * DRAIN_SHARE));
  const { inboxRetentionMs } = engineOptions(config);
  const { copiesDeadLetters } = config;
  const stores = createGroupStores({ client, database, group: config.group, inboxRetentionMs, copiesDeadLetters });
  const traces = tracing === null ? null : createConsumerTracer(tracing, config.group);
  consumer = createConsumer<ClientSession>(
    portsOf({
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
        traces?.observe(event);
      },
      ...(traces === null ? {} : { tracer: traces.tracer }),
    }),
    {
      ...definition.tuning,
      group: groupId(config.group),
      handlers: engine,
      read: (envelope) => catalogue.read(envelope),
      ...engineOptions(config),
      drainMs,
    },
  );
  companion = definition.companion?.(resources, { drainMs, metrics: told.served.metrics }) ?? null;
  const started = { consumer, companion };
  // Together, since they share the time for stopping.
  opened.push(async () => {
    await Promise.all([started.consumer.stop(), started.companion?.stop()]);
  });
  return started;
}

/** What the engine is told of the settings. */
function engineOptions(config: ConfigOf<WorkerSettings>) {
  const { attemptsMax, catchUpMax, commitMax, gapWaitMs, invisibleMs, ledgerEveryMs, ledgerLagMs } = config;
  const { receiveLoops, receiveMax } = config;
  return {
    attemptsMax,
    catchUpMax,
    commitMax,
    gapWaitMs,
    invisibleMs,
    ledgerEveryMs,
    ledgerLagMs,
    receiveLoops,
    receiveMax,
    inboxRetentionMs: config.inboxRetentionDays * 24 * HOUR_MS,
    brokerRetentionMs: config.brokerRetentionHours * HOUR_MS,
  };
}
