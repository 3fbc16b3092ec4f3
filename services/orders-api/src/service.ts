import { openArchive } from '@nightporter/archive';
import { ordersCatalogue } from '@nightporter/contracts';
import { connectMongo, engineOf, ensureOutboxCollections } from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import {
  transactionTracer,
  type ConfigOf,
  type RunningService,
  type ServiceContext,
  type ServiceDefinition,
} from '@nightporter/runtime';
import { buildApp } from './http/app.js';
import { ordersApiSettings } from './settings.js';
import { ensureOrdersCollections } from './store/documents.js';
import { createLedgerOrderEvents } from './store/ledger-order-events.js';
import { createMongoOrders } from './store/mongo-orders.js';

/** Names this producer in every event; part of each order's identity, never to be changed. */
export const ORDERS_SOURCE = 'orders';

const HOUR_MS = 3_600_000;

async function start({
  config,
  logger,
  tracing = null,
}: ServiceContext<ConfigOf<typeof ordersApiSettings>>): Promise<RunningService> {
  const files = config.archiveFolder === null ? null : await openArchive(config.archiveFolder);
  const client = await connectMongo({ uri: config.mongodbUri, appName: 'orders-api' });
  const database = config.mongodbDatabase;
  await ensureOutboxCollections(client, database);
  await ensureOrdersCollections(client, database);
  const outbox = createOutbox({
    client,
    database,
    source: ORDERS_SOURCE,
    catalogue: ordersCatalogue,
    tracer: tracing === null ? null : transactionTracer(tracing, { database }),
  });
  const app = await buildApp({
    orders: createMongoOrders({
      client,
      database,
      outbox,
      idempotencyRetentionMs: config.idempotencyHours * HOUR_MS,
      commandMs: config.commandMs,
    }),
    events: createLedgerOrderEvents({ client, database, source: ORDERS_SOURCE, files }),
    logger,
    tracing,
    checks: {
      // Needs a primary: without one no command can be carried out.
      database: async () => {
        await client.db(database).command({ ping: 1 });
        return null;
      },
    },
    bodyBytesMax: config.bodyBytesMax,
    requestsPerMinuteMax: config.requestsPerMinuteMax,
  });
  const address = await app.listen({ host: config.host, port: config.port });
  logger.info({ address, database, ...(await engineOf(client)) }, 'serving orders');
  return {
    ended: new Promise<never>(() => undefined),
    stop: async () => {
      // Takes no new request, and answers those in hand.
      await app.close();
      await client.close();
    },
  };
}

export const ordersApi: ServiceDefinition<typeof ordersApiSettings> = {
  name: 'orders-api',
  description: 'Orders over HTTP, written with their events in one transaction.',
  config: ordersApiSettings,
  start,
};
