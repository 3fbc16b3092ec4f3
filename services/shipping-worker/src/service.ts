import { ordersCatalogue } from '@nightporter/contracts';
import { defineConsumer } from '@nightporter/worker';
import { ensureShippingCollections, shipmentsOf } from './documents.js';
import { createShippingHandlers } from './handlers.js';

/** The worker as a service. */
export function createShippingWorker() {
  return defineConsumer({
    name: 'shipping-worker',
    description: 'Ships what has left the shelf, and notes what comes back.',
    port: 3005,
    database: 'shipping',
    group: 'shipping',
    source: 'shipping',
    catalogue: ordersCatalogue,
    subscriptions: [{ producer: 'inventory', topic: 'inventory-events' }],
    prepare: ({ client, database }) => ensureShippingCollections(client, database.databaseName),
    handlers: ({ database }) => createShippingHandlers(shipmentsOf(database)),
  });
}
