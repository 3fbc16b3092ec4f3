import { inventoryCollections } from '@nightporter/inventory-worker';
import { TOLD_TYPES } from '@nightporter/notification-worker';
import { ordersCollections, type OrderDocument } from '@nightporter/orders-api';
import { pointsCollections } from '@nightporter/points-worker';
import { expect } from 'vitest';
import { askAsDocumented } from '../../support/warehouse-query.js';
import type { Promised, TakenPayment } from './shop-load.js';
import type { ShopWorld } from './shop-world.js';

export interface Books {
  readonly orders: number;
  readonly completed: number;
  readonly cancelled: number;
  readonly payments: number;
  readonly refunds: number;
  readonly events: number;
  readonly notifications: number;
  /** Of these, how many came more than once, each time under its key: from a worker that was killed before it could take down that it had sent. */
  readonly toldAgain: number;
}

/**
 * What must be so at rest, reckoned from what customers were promised and from the orders alone: every order and payment is there, exactly the
 * refunds that are owed are due, pieces are conserved, each customer has the points of what was paid and stayed and was told of it, and the warehouse
 * says the same.
 */
export async function expectBooks(
  world: ShopWorld,
  { promised, stock }: { promised: readonly Promised[]; stock: ReadonlyMap<string, number> },
): Promise<Books> {
  const { orders: collection, refunds } = ordersCollections(world.client.db('orders'));
  const orders = await collection.find().toArray();
  const taken = promised.flatMap(({ payments }) => payments);
  expect(orders.map(({ _id }) => _id).sort()).toEqual(promised.flatMap(({ orderIds }) => orderIds).sort());
  expect(orders.filter(({ status }) => status === 'PAID')).toEqual([]);
  const due = (await refunds.find().toArray()).map(({ _id, amountMinor, orderId }) => [_id, orderId, amountMinor]);
  const owed = owedBack(orders, taken);
  expect(due.sort()).toEqual(
    owed.map(({ amountMinor, orderId, transactionId }) => [transactionId, orderId, amountMinor]).sort(),
  );
  await expectStock(world, orders, stock);
  await expectPoints(world, orders);
  const events = await expectWarehouse(world, orders);
  const told = await expectTold(world, orders);
  const reconciled = await world.reconciled();
  expect(reconciled.differences).toEqual([]);
  expect(reconciled).toMatchObject({ orders: orders.length, differencesTotal: 0 });
  expect(reconciled.refundsDue).toHaveLength(owed.length);
  const count = (status: OrderDocument['status']): number => orders.filter((order) => order.status === status).length;
  return {
    orders: orders.length,
    completed: count('COMPLETED'),
    cancelled: count('CANCELLED'),
    payments: taken.length,
    refunds: owed.length,
    events,
    ...told,
  };
}

/** Whoever paid has the goods, or gets the money back. */
function owedBack(orders: readonly OrderDocument[], taken: readonly TakenPayment[]): readonly TakenPayment[] {
  const kept = new Set(
    orders.filter(({ status }) => status === 'COMPLETED').map(({ payment }) => payment?.transactionId),
  );
  return taken.filter(({ transactionId }) => !kept.has(transactionId));
}

async function expectStock(
  { client }: ShopWorld,
  orders: readonly OrderDocument[],
  stock: ReadonlyMap<string, number>,
): Promise<void> {
  const shelf = await inventoryCollections(client.db('inventory')).stock.find().toArray();
  const pieces = (status: OrderDocument['status'], productId: string): number =>
    orders
      .filter((order) => order.status === status)
      .flatMap(({ lines }) => lines)
      .reduce((sum, line) => sum + (line.productId === productId ? line.quantity : 0), 0);
  const wanted = [...stock].map(([productId, seededPieces]) => {
    const [reserved, shipped] = [pieces('CREATED', productId), pieces('COMPLETED', productId)];
    return { _id: productId, available: seededPieces - reserved - shipped, reserved, shipped };
  });
  expect(shelf.toSorted(byId)).toEqual(wanted.toSorted(byId));
}

async function expectPoints({ client }: ShopWorld, orders: readonly OrderDocument[]): Promise<void> {
  const accounts = await pointsCollections(client.db('points')).accounts.find().toArray();
  const balances = new Map(accounts.map(({ _id }) => [_id, 0]));
  for (const { customerId, status, totalMinor } of orders) {
    if (status !== 'COMPLETED') continue;
    // One point for every full unit.
    balances.set(customerId, (balances.get(customerId) ?? 0) + Math.floor(totalMinor / 100));
  }
  expect(new Map(accounts.map(({ _id, balance }) => [_id, balance]))).toEqual(balances);
}

/** Each customer was told of each event that he hears of, by a receiver that counts. */
async function expectTold(
  world: ShopWorld,
  orders: readonly OrderDocument[],
): Promise<Pick<Books, 'notifications' | 'toldAgain'>> {
  const customerOf = new Map(orders.map(({ _id, customerId }) => [_id, customerId]));
  const isTold = new Set<string>(TOLD_TYPES);
  const wanted = (await world.committed())
    .filter(({ aggregateType, eventType }) => aggregateType === 'order' && isTold.has(eventType))
    .map(({ _id, aggregateId }) => `${_id} to ${customerOf.get(aggregateId) ?? 'nobody'}`);
  const byKey = new Map(
    world.receiver.deliveries.map(({ body, key }) => [
      key,
      `${String(body['eventId'])} to ${String(body['recipient'])}`,
    ]),
  );
  expect([...byKey.values()].sort()).toEqual(wanted.sort());
  const toldAgain = [...world.receiver.counts().values()].filter((count) => count > 1).length;
  return { notifications: byKey.size, toldAgain };
}

/** What docs/warehouse.md asks DuckDB, beside what MongoDB has. Returns how many events there are. */
async function expectWarehouse(world: ShopWorld, orders: readonly OrderDocument[]): Promise<number> {
  const { payments, refunds } = ordersCollections(world.client.db('orders'));
  const [paid, due] = [await payments.find({ outcome: 'applied' }).toArray(), await refunds.find().toArray()];
  const sum = (of: readonly { currency: string }[], currency: string, minor: (one: never) => number): string =>
    String(of.filter((one) => one.currency === currency).reduce((total, one) => total + minor(one as never), 0));
  const amount = ({ amountMinor }: { amountMinor: number }): number => amountMinor;
  const currencies = [...new Set(orders.map(({ currency }) => currency))].sort();
  const totals = currencies.map((currency) => {
    const own = orders.filter((order) => order.currency === currency);
    return {
      currency,
      orders: String(own.length),
      completed: String(own.filter(({ status }) => status === 'COMPLETED').length),
      cancelled: String(own.filter(({ status }) => status === 'CANCELLED').length),
      ordered_minor: sum(orders, currency, ({ totalMinor }: OrderDocument) => totalMinor),
      paid_minor: sum(paid, currency, amount),
      owed_back_minor: sum(due, currency, amount),
    };
  });
  const committed = await world.committed();
  const byType = new Map<string, number>();
  for (const { eventType } of committed) byType.set(eventType, (byType.get(eventType) ?? 0) + 1);
  const events = [...byType]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([type, count]) => ({ event_type: type, events: String(count), different: String(count) }));
  expect(await askAsDocumented(world.warehouseFolder)).toEqual({ totals, events });
  return committed.length;
}

function byId(one: { _id: string }, other: { _id: string }): number {
  return one._id < other._id ? -1 : 1;
}
