import type { Collection, Db, MongoClient } from 'mongodb';
import type { Order } from '../domain/order.js';
import type { Payment, RefundDue } from '../domain/payment.js';
import type { CommandOutcome } from '../orders.js';

/** A document of `orders`: the order as it is after its last event. */
export interface OrderDocument extends Omit<Order, 'orderId'> {
  readonly _id: string;
  /** Both by the database's clock. */
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A document of `idempotency_keys`: what became of the request that came with this key. */
export interface IdempotencyDocument {
  readonly _id: string;
  readonly requestHash: string;
  readonly outcome: CommandOutcome;
  readonly createdAt: Date;
  /** Removed by the server some time after this. */
  readonly expireAt: Date;
}

/** A document of `payments`: only ever inserted, so that a payment provider's number is used once. */
export interface PaymentDocument extends Omit<Payment, 'transactionId'> {
  /** The payment provider's number. */
  readonly _id: string;
  readonly receivedAt: Date;
}

/** A document of `refunds`: money that a customer is to get back. Paying it out is another system's work. */
export interface RefundDocument extends Omit<RefundDue, 'transactionId'> {
  /** The number of the payment that is owed back. */
  readonly _id: string;
  readonly state: 'due';
  readonly dueAt: Date;
}

export interface OrdersCollections {
  readonly orders: Collection<OrderDocument>;
  readonly payments: Collection<PaymentDocument>;
  readonly refunds: Collection<RefundDocument>;
  readonly idempotencyKeys: Collection<IdempotencyDocument>;
}

export function ordersCollections(database: Db): OrdersCollections {
  return {
    orders: database.collection<OrderDocument>('orders'),
    payments: database.collection<PaymentDocument>('payments'),
    refunds: database.collection<RefundDocument>('refunds'),
    idempotencyKeys: database.collection<IdempotencyDocument>('idempotency_keys'),
  };
}

/** Creates collections and indexes where they are missing; safe to call at every start, from several processes at once. */
export async function ensureOrdersCollections(client: MongoClient, database: string): Promise<void> {
  const { orders, payments, refunds, idempotencyKeys } = ordersCollections(client.db(database));
  await idempotencyKeys.createIndex({ expireAt: 1 }, { expireAfterSeconds: 0 }, undefined);
  // A transaction should not be the one that creates a collection: concurrent ones would conflict over it.
  await orders.createIndex({ customerId: 1, _id: 1 });
  await orders.createIndex({ status: 1, _id: 1 });
  await payments.createIndex({ orderId: 1 });
  await refunds.createIndex({ orderId: 1 });
}

export function paymentOf({ _id, orderId, amountMinor, currency, outcome }: PaymentDocument): Payment {
  return { transactionId: _id, orderId, amountMinor, currency, outcome };
}

export function orderOf(document: OrderDocument): Order {
  const { _id, version, status, customerId, currency, lines, totalMinor, payment, cancellation } = document;
  return { orderId: _id, version, status, customerId, currency, lines, totalMinor, payment, cancellation };
}

/** The fields of a document that an order fills. */
export function fieldsOf(order: Order): Omit<Order, 'orderId'> {
  const { version, status, customerId, currency, lines, totalMinor, payment, cancellation } = order;
  return { version, status, customerId, currency, lines, totalMinor, payment, cancellation };
}
