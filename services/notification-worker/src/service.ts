import { ordersCatalogue } from '@nightporter/contracts';
import { defineConsumer } from '@nightporter/worker';
import { createDelivery } from './delivery/create-delivery.js';
import { ensureNotificationCollections, notificationCollections } from './documents.js';
import { createNotificationHandlers } from './handlers.js';
import { DELIVERY_METRICS } from './metrics-table.js';
import { createSenders } from './senders/senders.js';
import { assertUsable, notificationSettings } from './settings.js';

/** The worker as a service: a consumer that puts notifications down, and beside it a loop that sends them. */
export function createNotificationWorker() {
  return defineConsumer({
    name: 'notification-worker',
    description: 'Tells customers what became of their orders, in the log, by webhook or by mail.',
    port: 3007,
    database: 'notification',
    group: 'notification',
    source: 'notification',
    catalogue: ordersCatalogue,
    subscriptions: [{ producer: 'orders', topic: 'orders-events' }],
    settings: notificationSettings,
    prepare: async ({ client, config, database }) => {
      assertUsable(config);
      await ensureNotificationCollections(client, database.databaseName);
    },
    handlers: ({ config, database }) => createNotificationHandlers(notificationCollections(database), config.channels),
    companion: (resources, { drainMs, metrics }) => {
      const { config, logger } = resources;
      return createDelivery(resources, {
        senders: createSenders(config, logger),
        drainMs,
        metrics: metrics.extend(DELIVERY_METRICS),
        deliveriesMax: config.deliveriesMax,
        pollMs: config.deliveryPollMs,
        claimMs: config.deliveryClaimMs,
        sendTimeoutMs: config.sendTimeoutMs,
        attemptsMax: config.deliveryAttemptsMax,
        retryFirstMs: config.deliveryRetryFirstMs,
        retryCapMs: config.deliveryRetryCapMs,
      });
    },
  });
}
