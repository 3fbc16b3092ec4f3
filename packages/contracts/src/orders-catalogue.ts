import { z } from 'zod';
import { createCatalogue } from './catalogue.js';
import { defineEvent, type EventData } from './event-definition.js';
import { isAggregateId } from './names.js';

/**
 * The worked example: an order, its payment, the stock that is reserved for it, and its shipment. Money is integer minor units and a
 * currency.
 */

const ORDER = { version: 1, aggregateType: 'order', topic: 'orders-events' } as const;
/** The reservation of an order's lines; its aggregateId is the order's. */
const RESERVATION = { version: 1, aggregateType: 'reservation', topic: 'inventory-events' } as const;
/** What is sent for an order; its aggregateId is the order's. */
const SHIPMENT = { version: 1, aggregateType: 'shipment', topic: 'shipping-events' } as const;

const LINES_MAX = 100;

const identifier = z
  .string()
  .max(200)
  .refine(isAggregateId, { error: 'must be 1 to 200 characters without control characters and lone surrogates' });
const quantity = z.int().min(1);
const minorUnits = z.int().min(0);
/** ISO 4217, `EUR`. */
const currency = z.string().regex(/^[A-Z]{3}$/, { error: 'must be three capital letters' });

const stockLine = z.strictObject({ productId: identifier, quantity });
const orderLine = z.strictObject({ productId: identifier, quantity, unitPriceMinor: minorUnits });
const stockLines = z.array(stockLine).min(1).max(LINES_MAX);

export const orderCreated = defineEvent({
  ...ORDER,
  type: 'OrderCreated',
  schema: z.strictObject({
    customerId: identifier,
    currency,
    lines: z.array(orderLine).min(1).max(LINES_MAX),
    totalMinor: minorUnits,
  }),
});

export const orderPaid = defineEvent({
  ...ORDER,
  type: 'OrderPaid',
  schema: z.strictObject({ transactionId: identifier, amountMinor: minorUnits, currency }),
});

export const orderCancelled = defineEvent({
  ...ORDER,
  type: 'OrderCancelled',
  schema: z.strictObject({ reason: z.string().min(1).max(1000), wasPaid: z.boolean() }),
});

export const orderCompleted = defineEvent({ ...ORDER, type: 'OrderCompleted', schema: z.strictObject({}) });

/** Money that the order did not call for, and that is therefore owed back. The order stays as it is. */
export const surplusPaymentReceived = defineEvent({
  ...ORDER,
  type: 'SurplusPaymentReceived',
  schema: z.strictObject({
    transactionId: identifier,
    amountMinor: minorUnits,
    currency,
    cause: z.enum(['cancelled', 'paid-already', 'amount-mismatch']),
  }),
});

export const inventoryReserved = defineEvent({
  ...RESERVATION,
  type: 'InventoryReserved',
  schema: z.strictObject({ orderId: identifier, lines: stockLines }),
});

export const inventoryRejected = defineEvent({
  ...RESERVATION,
  type: 'InventoryRejected',
  schema: z.strictObject({
    orderId: identifier,
    shortages: z
      .array(z.strictObject({ productId: identifier, requested: quantity, available: minorUnits }))
      .min(1)
      .max(LINES_MAX),
  }),
});

export const inventoryReleased = defineEvent({
  ...RESERVATION,
  type: 'InventoryReleased',
  schema: z.strictObject({ orderId: identifier, lines: stockLines }),
});

/** The order is paid: its stock leaves the shelf for good. */
export const inventoryCommitted = defineEvent({
  ...RESERVATION,
  type: 'InventoryCommitted',
  schema: z.strictObject({ orderId: identifier, lines: stockLines }),
});

/** The order was cancelled after its stock had left the shelf: it is put back. */
export const inventoryReturned = defineEvent({
  ...RESERVATION,
  type: 'InventoryReturned',
  schema: z.strictObject({ orderId: identifier, lines: stockLines }),
});

export const shipmentCreated = defineEvent({
  ...SHIPMENT,
  type: 'ShipmentCreated',
  schema: z.strictObject({ orderId: identifier, lines: stockLines }),
});

export const shipmentDelivered = defineEvent({
  ...SHIPMENT,
  type: 'ShipmentDelivered',
  schema: z.strictObject({ orderId: identifier }),
});

export const shipmentReturned = defineEvent({
  ...SHIPMENT,
  type: 'ShipmentReturned',
  schema: z.strictObject({ orderId: identifier, wasDelivered: z.boolean() }),
});

export type OrderCreated = EventData<typeof orderCreated>;
export type OrderPaid = EventData<typeof orderPaid>;
export type OrderCancelled = EventData<typeof orderCancelled>;
export type OrderCompleted = EventData<typeof orderCompleted>;
export type SurplusPaymentReceived = EventData<typeof surplusPaymentReceived>;
export type InventoryReserved = EventData<typeof inventoryReserved>;
export type InventoryRejected = EventData<typeof inventoryRejected>;
export type InventoryReleased = EventData<typeof inventoryReleased>;
export type InventoryCommitted = EventData<typeof inventoryCommitted>;
export type InventoryReturned = EventData<typeof inventoryReturned>;
export type ShipmentCreated = EventData<typeof shipmentCreated>;
export type ShipmentDelivered = EventData<typeof shipmentDelivered>;
export type ShipmentReturned = EventData<typeof shipmentReturned>;

export const ordersCatalogue = createCatalogue([
  orderCreated,
  orderPaid,
  orderCancelled,
  orderCompleted,
  surplusPaymentReceived,
  inventoryReserved,
  inventoryRejected,
  inventoryReleased,
  inventoryCommitted,
  inventoryReturned,
  shipmentCreated,
  shipmentDelivered,
  shipmentReturned,
]);
