import { ordersCatalogue } from '@nightporter/contracts';
import { ensureOrdersCollections, ordersCollections, ORDERS_SOURCE } from '@nightporter/orders-api';
import { defineConsumer } from '@nightporter/worker';
import { createOrdersHandlers } from './handlers.js';

/** The worker as a service. It shares database and source with orders-api: an order has one producer, whoever changes it. */
export function createOrdersWorker() {
  return defineConsumer({
    name: 'orders-worker',
    description: 'Cancels orders whose stock is short, and completes those that have been delivered.',
    port: 3003,
    database: 'orders',
    group: 'orders',
    source: ORDERS_SOURCE,
    catalogue: ordersCatalogue,
    subscriptions: [
      { producer: 'inventory', topic: 'inventory-events' },
      { producer: 'shipping', topic: 'shipping-events' },
    ],
    prepare: ({ client, database }) => ensureOrdersCollections(client, database.databaseName),
    handlers: ({ database }) => createOrdersHandlers(ordersCollections(database)),
  });
}
