import { NightporterError } from '@nightporter/protocol';
import type { ClientSession } from 'mongodb';
import { decide, evolve, type Order, type OrderCommand, type OrderEvent } from '../domain/order.js';
import { decideKnown, moneyOf, type Payment } from '../domain/payment.js';
import type { CommandOutcome, ExpectedVersion } from '../orders.js';
import { fieldsOf, orderOf, paymentOf, type OrdersCollections } from './documents.js';

/** Where an event of an order goes. An order's version counts its events: where the two disagree, the transaction must fail. */
export interface OrderPlace {
  readonly aggregateType: 'order';
  readonly aggregateId: string;
  readonly expectedVersion: number;
}

/** The transaction that a command is part of: a request's own, or that of a worker's handler. */
export interface CommandScope {
  readonly session: ClientSession;
  readonly emit: (event: OrderEvent, place: OrderPlace) => Promise<void>;
}

export interface CommandOnOrder {
  readonly orderId: string;
  readonly command: OrderCommand;
  readonly expected: ExpectedVersion;
}

/**
 * Reads the order, decides, and writes what follows: the order, its payments, the refunds that are due, and its events, all in the
 * transaction of `scope`. Where two create one order or use one payment, one of them gets the driver's duplicate key error.
 */
export async function applyCommand(
  scope: CommandScope,
  { orderId, command, expected }: CommandOnOrder,
  collections: OrdersCollections,
): Promise<CommandOutcome> {
  const document = await collections.orders.findOne({ _id: orderId }, { session: scope.session });
  const before = document === null ? null : orderOf(document);
  if (before !== null && !allows(expected, before.version)) return { kind: 'stale', version: before.version };
  const known = await knownPayment(command, scope.session, collections);
  const decision = decideKnown(command, orderId, known) ?? decide(command, before);
  switch (decision.kind) {
    case 'rejected':
      return { kind: 'rejected', rejection: decision.rejection };
    case 'unchanged':
      if (before === null)
        throw new NightporterError('NP_INTERNAL', `a command left order ${orderId} unchanged, which does not exist`);
      return { kind: 'accepted', order: before };
    case 'events': {
      const [event] = decision.events;
      const after = evolve(before, event);
      await writeOrder({ before, after }, scope.session, collections);
      await writeMoney(event, { before, orderId }, scope.session, collections);
      const place = { aggregateType: 'order', aggregateId: orderId, expectedVersion: before?.version ?? 0 } as const;
      await scope.emit(event, place);
      return { kind: 'accepted', order: after };
    }
  }
}

function allows(expected: ExpectedVersion, version: number): boolean {
  return expected.kind === 'any' || expected.versions.includes(version);
}

async function knownPayment(
  command: OrderCommand,
  session: ClientSession,
  { payments }: OrdersCollections,
): Promise<Payment | null> {
  if (command.kind !== 'pay' && command.kind !== 'receive-payment') return null;
  const document = await payments.findOne({ _id: command.transactionId }, { session });
  return document === null ? null : paymentOf(document);
}

/** No order has it: the first event makes version 1. */
const NOT_CREATED = 0;

async function writeOrder(
  { before, after }: { before: Order | null; after: Order },
  session: ClientSession,
  { orders }: OrdersCollections,
): Promise<void> {
  // By the database's clock, so that nobody has to believe a producer's: a filter that fits no order, so that an order that is there
  // already is a duplicate key, as with an insert.
  const created = { _id: after.orderId, version: NOT_CREATED };
  const dated = { updatedAt: true } as const;
  if (before === null) {
    const update = { $set: fieldsOf(after), $currentDate: { createdAt: true, ...dated } } as const;
    await orders.updateOne(created, update, { session, upsert: true });
    return;
  }
  const result = await orders.updateOne(
    { _id: after.orderId, version: before.version },
    { $set: fieldsOf(after), $currentDate: dated },
    { session },
  );
  if (result.modifiedCount !== 1) {
    throw new NightporterError(
      'NP_TRANSACTION_CONFLICT',
      `order ${after.orderId} has left version ${before.version} meanwhile`,
    );
  }
}

async function writeMoney(
  event: OrderEvent,
  order: { before: Order | null; orderId: string },
  session: ClientSession,
  collections: OrdersCollections,
): Promise<void> {
  const { payments, refunds } = moneyOf(event, order);
  const now = new Date();
  for (const { transactionId, ...payment } of payments)
    await collections.payments.insertOne({ _id: transactionId, ...payment, receivedAt: now }, { session });
  for (const { transactionId, ...refund } of refunds)
    await collections.refunds.insertOne({ _id: transactionId, ...refund, state: 'due', dueAt: now }, { session });
}
