import { ordersCatalogue } from '@nightporter/contracts';
import { optionalList, setting, text } from '@nightporter/runtime';
import { defineConsumer, type WorkerParts } from '@nightporter/worker';
import { ensureInventoryCollections, inventoryCollections, seedStock } from './documents.js';
import type { StockLine } from './domain/stock.js';
import { createInventoryHandlers } from './handlers.js';

/** Names this producer in every event; never to be changed. */
export const INVENTORY_SOURCE = 'inventory';

const productAndQuantity = text({
  charactersMax: 220,
  pattern: /^[^=,]{1,200}=\d{1,9}$/,
  accepts: 'product=quantity',
});

/** The worker as a service. */
export function createInventoryWorker(parts: WorkerParts = {}) {
  return defineConsumer(
    {
      name: 'inventory-worker',
      description:
        'Reserves stock for orders, lets it go when they are paid, and takes it back when they are cancelled.',
      port: 3002,
      database: 'inventory',
      group: 'inventory',
      source: INVENTORY_SOURCE,
      catalogue: ordersCatalogue,
      subscriptions: [{ producer: 'orders', topic: 'orders-events', topicSetting: 'TOPIC' }],
      settings: {
        stock: setting({
          name: 'STOCK',
          kind: optionalList(productAndQuantity, { itemsMax: 1_000 }),
          default: '',
          description:
            'Products to put on the shelf when they are not there yet, as product=quantity; existing ones keep their stock.',
        }),
      },
      prepare: async ({ client, config, database }) => {
        await ensureInventoryCollections(client, database.databaseName);
        await seedStock(client, database.databaseName, config.stock.map(stockLineOf));
      },
      handlers: ({ database }) => createInventoryHandlers(inventoryCollections(database)),
    },
    parts,
  );
}

/** `apple=100` */
function stockLineOf(seed: string): StockLine {
  const at = seed.lastIndexOf('=');
  return { productId: seed.slice(0, at), quantity: Number(seed.slice(at + 1)) };
}
