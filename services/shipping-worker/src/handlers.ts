import type { ordersCatalogue } from '@nightporter/contracts';
import type { ContextOf, HandlersOf } from '@nightporter/worker';
import type { Collection } from 'mongodb';
import type { ShipmentDocument } from './documents.js';

type Events = typeof ordersCatalogue.events;

/**
 * Ships what has left the shelf, once per order. Strategy: business unique key. The order's id is the shipment's, and only the insert
 * that makes it emits its events. The carrier of this example delivers at once.
 */
export function createShippingHandlers(shipments: Collection<ShipmentDocument>): HandlersOf<Events> {
  return {
    InventoryCommitted: (context) => ship(context, shipments),
    InventoryReturned: (context) => takeBack(context, shipments),
  };
}

async function ship(
  { event, session, emit }: ContextOf<Events, 'InventoryCommitted'>,
  shipments: Collection<ShipmentDocument>,
): Promise<void> {
  const { orderId, lines } = event.data;
  const now = new Date();
  // An upsert, since a duplicate key error would end the transaction.
  const { upsertedCount } = await shipments.updateOne(
    { _id: orderId },
    { $setOnInsert: { lines, state: 'delivered', createdAt: now, updatedAt: now } },
    { session, upsert: true },
  );
  if (upsertedCount === 0) return;
  await emit({ ...shipmentOf(orderId), eventType: 'ShipmentCreated', payload: { orderId, lines } });
  await emit({ ...shipmentOf(orderId), eventType: 'ShipmentDelivered', payload: { orderId } });
}

async function takeBack(
  { event, session, emit }: ContextOf<Events, 'InventoryReturned'>,
  shipments: Collection<ShipmentDocument>,
): Promise<void> {
  const { orderId } = event.data;
  const before = await shipments.findOneAndUpdate(
    { _id: orderId, state: { $ne: 'returned' } },
    { $set: { state: 'returned', updatedAt: new Date() } },
    { session, returnDocument: 'before' },
  );
  if (before === null) return;
  const wasDelivered = before.state === 'delivered';
  await emit({ ...shipmentOf(orderId), eventType: 'ShipmentReturned', payload: { orderId, wasDelivered } });
}

/** The shipment of an order has the order's id. */
function shipmentOf(orderId: string): { readonly aggregateType: 'shipment'; readonly aggregateId: string } {
  return { aggregateType: 'shipment', aggregateId: orderId };
}
