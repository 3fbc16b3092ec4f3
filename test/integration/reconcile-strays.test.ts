import { reconcile, type Reconciliation } from '@nightporter/cli';
import { ordersCatalogue } from '@nightporter/contracts';
import { inventoryCollections, type ReservationState } from '@nightporter/inventory-worker';
import { connectMongo, ensureOutboxCollections } from '@nightporter/mongo';
import { ordersCollections, type OrderDocument } from '@nightporter/orders-api';
import { createOutbox } from '@nightporter/outbox';
import { pointsCollections } from '@nightporter/points-worker';
import { shipmentsOf } from '@nightporter/shipping-worker';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';

const databases = {
  orders: uniqueName('o'),
  inventory: uniqueName('i'),
  shipping: uniqueName('s'),
  points: uniqueName('p'),
};
const groups = { orders: 'orders', inventory: 'inventory', shipping: 'shipping', points: 'points' };
const at = new Date();
const money = { amountMinor: 250, currency: 'EUR' };

let client: MongoClient;

beforeAll(async () => {
  client = await connectMongo({ uri: sharedStack().mongodbUri });
});
afterAll(async () => {
  for (const name of Object.values(databases)) await client.db(name).dropDatabase();
  await client.close();
});

/** Orders are left out, so that only what names an order is compared. */
function compared(since: Date | null): Promise<Reconciliation> {
  return reconcile({ client, databases, groups, since, until: new Date(0) });
}

async function reserve(orderId: string, state: ReservationState, eventId: string): Promise<void> {
  const { reservations } = inventoryCollections(client.db(databases.inventory));
  await reservations.insertOne({
    _id: orderId,
    state,
    lines: [],
    movements: 1,
    eventId,
    aggregateVersion: 1,
    updatedAt: at,
  });
}

it('Whatever names an order that is not there is a difference, whatever its state, with the event that tells of it', async () => {
  await ensureOutboxCollections(client, databases.orders);
  const outbox = createOutbox({ client, database: databases.orders, source: 'orders', catalogue: ordersCatalogue });
  const lines = [{ productId: 'apple', quantity: 1, unitPriceMinor: 250 }];
  const created = await outbox.transaction(({ emit }) =>
    emit({
      aggregateType: 'order',
      aggregateId: 'lost',
      eventType: 'OrderCreated',
      payload: { customerId: 'c', currency: 'EUR', lines, totalMinor: 250 },
    }),
  );
  const cancelled = await outbox.transaction(({ emit }) =>
    emit({
      aggregateType: 'order',
      aggregateId: 'never',
      eventType: 'OrderCancelled',
      payload: { reason: 'never mind', wasPaid: false },
    }),
  );
  const { orders, payments, refunds } = ordersCollections(client.db(databases.orders));
  await orders.insertOne({ _id: 'there', updatedAt: at } as OrderDocument);
  await payments.insertOne({ _id: 't1', orderId: 'lost', ...money, outcome: 'applied', receivedAt: at });
  await payments.insertOne({ _id: 't2', orderId: 'there', ...money, outcome: 'applied', receivedAt: at });
  const refund = { ...money, cause: 'cancelled-after-payment', state: 'due', dueAt: at } as const;
  await refunds.insertOne({ _id: 't3', orderId: 'nobody', ...refund });
  await refunds.insertOne({ _id: 't2', orderId: 'there', ...refund });
  await reserve('never', 'released', cancelled.eventId);
  await reserve('lost', 'rejected', created.eventId);
  await reserve('there', 'rejected', 'some event');
  const shipment = { lines: [], state: 'delivered', createdAt: at, updatedAt: at } as const;
  await shipmentsOf(client.db(databases.shipping)).insertOne({ _id: 'lost', ...shipment });
  await shipmentsOf(client.db(databases.shipping)).insertOne({ _id: 'there', ...shipment });
  const { awards } = pointsCollections(client.db(databases.points));
  await awards.insertOne({ _id: 'lost', customerId: 'c', points: 0, state: 'open', version: 1 });
  await awards.insertOne({ _id: 'there', customerId: 'c', points: 0, state: 'open', version: 1 });

  const { differences } = await compared(null);
  const told = differences.map(({ between, brokeAt, detail, orderId }) => [
    between,
    `${orderId ?? ''} ${detail}`,
    brokeAt?.eventId ?? null,
  ]);
  expect(told.sort()).toEqual([
    ['orders and awards', 'lost is not there, and its award of 0 points is open', created.eventId],
    ['orders and payments', 'lost is not there, and payment t1 of 250 EUR is applied', created.eventId],
    ['orders and refunds', 'nobody is not there, and refund of 250 EUR for payment t3 is due', null],
    ['orders and reservations', 'lost is not there, and its reservation is rejected', created.eventId],
    ['orders and reservations', 'never is not there, and its reservation is released', cancelled.eventId],
    ['orders and shipments', 'lost is not there, and its shipment is delivered', created.eventId],
  ]);
  // Only some of the orders are looked at then.
  expect((await compared(at)).differences).toEqual([]);
});
