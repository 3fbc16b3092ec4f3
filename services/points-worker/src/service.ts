import { ordersCatalogue } from '@nightporter/contracts';
import { defineConsumer } from '@nightporter/worker';
import { ensurePointsCollections, pointsCollections } from './documents.js';
import { createPointsHandlers } from './handlers.js';

/** The worker as a service. */
export function createPointsWorker() {
  return defineConsumer({
    name: 'points-worker',
    description: 'Awards points for paid orders and takes them back when these are cancelled.',
    port: 3004,
    database: 'points',
    group: 'points',
    source: 'points',
    catalogue: ordersCatalogue,
    subscriptions: [{ producer: 'orders', topic: 'orders-events' }],
    prepare: ({ client, database }) => ensurePointsCollections(client, database.databaseName),
    handlers: ({ database }) => createPointsHandlers(pointsCollections(database)),
  });
}
