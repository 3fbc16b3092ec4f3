import { ordersCatalogue } from '@nightporter/contracts';
import { systemClock, systemRandom } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createWarehouseHandlers } from './handlers.js';
import { createLander } from './lander/lander.js';
import { LANDER_METRICS } from './metrics-table.js';
import type { SessionPorts } from './lander/session.js';
import { warehouseSettings } from './settings.js';
import { ensureWarehouseCollections, warehouseCollections } from './store/documents.js';
import { createWarehouseFolder } from './store/folder.js';
import { createWarehouseStore } from './store/warehouse-store.js';

export interface WarehouseParts {
  /** Stands between the lander and what it writes to; tests put faults here. */
  readonly portsOf?: (ports: SessionPorts) => SessionPorts;
}

/** The worker as a service. */
export function createWarehouseWorker({ portsOf = (ports) => ports }: WarehouseParts = {}) {
  return defineConsumer({
    name: 'warehouse-worker',
    description: 'Lands every event, and the facts of orders, as Parquet files that a manifest names, each once.',
    port: 3006,
    database: 'warehouse',
    group: 'warehouse',
    source: 'warehouse',
    catalogue: ordersCatalogue,
    subscriptions: [
      { producer: 'orders', topic: 'orders-events' },
      { producer: 'inventory', topic: 'inventory-events' },
      { producer: 'shipping', topic: 'shipping-events' },
    ],
    settings: warehouseSettings,
    prepare: ({ client, database }) => ensureWarehouseCollections(client, database.databaseName),
    handlers: ({ database }) => createWarehouseHandlers(warehouseCollections(database)),
    companion: ({ client, config, database, logger }, { metrics }) =>
      createLander(
        {
          ...portsOf({
            store: createWarehouseStore(client, database.databaseName),
            folder: createWarehouseFolder(config.folder),
            newId: randomUUID,
          }),
          clock: systemClock,
          random: systemRandom,
          logger,
          metrics: metrics.extend(LANDER_METRICS),
          newOwner: () => `${hostname()}:${process.pid}:${randomUUID()}`,
        },
        {
          leaseMs: config.landerLeaseMs,
          everyMs: config.landEveryMs,
          eventsMax: config.landEventsMax,
          filesMin: config.compactFilesMin,
          rowsMax: config.compactRowsMax,
          coldMs: config.compactColdMs,
          keepReplacedMs: config.keepReplacedMs,
        },
      ),
  });
}
