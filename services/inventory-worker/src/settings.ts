import {
  commonSettings,
  integer,
  mongodbSettings,
  optionalList,
  rocketmqSettings,
  setting,
  text,
} from '@nightporter/runtime';
import type { StockLine } from './domain/stock.js';

const name = text({ charactersMax: 120, pattern: /^[%A-Za-z0-9_-]+$/, accepts: '1 to 120 letters, digits, %, _ or -' });

const productAndQuantity = text({
  charactersMax: 220,
  pattern: /^[^=,]{1,200}=\d{1,9}$/,
  accepts: 'product=quantity',
});

export const inventoryWorkerSettings = {
  ...commonSettings({ defaultPort: 3002 }),
  ...mongodbSettings({ defaultDatabase: 'inventory' }),
  ...rocketmqSettings(),
  producerDatabase: setting({
    name: 'ORDERS_DB',
    kind: text({ charactersMax: 38, pattern: /^[A-Za-z0-9_-]+$/, accepts: '1 to 38 letters, digits, _ or -' }),
    default: 'orders',
    description: "The producer's database, in which the group is registered so that its events are kept for it.",
  }),
  group: setting({
    name: 'GROUP',
    kind: name,
    default: 'inventory',
    description: 'Consumer group, here and at the broker. Workers of one group share the work.',
  }),
  topic: setting({
    name: 'TOPIC',
    kind: name,
    default: 'orders-events',
    description: 'Topic with the events of the orders. It is checked at the start, and the group with it.',
  }),
  receiveLoops: setting({
    name: 'RECEIVE_LOOPS',
    kind: integer({ min: 1, max: 32 }),
    default: '4',
    description: 'Batches in hand at once.',
  }),
  receiveMax: setting({
    name: 'RECEIVE_MAX',
    kind: integer({ min: 1, max: 32 }),
    unit: 'events',
    default: '32',
    description: 'Most events in one batch, which is settled in one transaction.',
  }),
  invisibleMs: setting({
    name: 'INVISIBLE_MS',
    kind: integer({ min: 1_000, max: 600_000 }),
    unit: 'ms',
    default: '30000',
    description:
      'How long the broker keeps the events of a worker that was killed from the others; a living worker extends it.',
  }),
  attemptsMax: setting({
    name: 'ATTEMPTS_MAX',
    kind: integer({ min: 1, max: 1_000 }),
    default: '5',
    description: 'Attempts before an event becomes a dead letter, which holds its own order only.',
  }),
  stock: setting({
    name: 'STOCK',
    kind: optionalList(productAndQuantity, { itemsMax: 1_000 }),
    default: '',
    description:
      'Products to put on the shelf when they are not there yet, as product=quantity; existing ones keep their stock.',
  }),
};

/** `apple=100` */
export function stockLineOf(seed: string): StockLine {
  const at = seed.lastIndexOf('=');
  return { productId: seed.slice(0, at), quantity: Number(seed.slice(at + 1)) };
}
