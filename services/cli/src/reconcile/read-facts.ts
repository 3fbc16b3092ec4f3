import { inventoryCollections } from '@nightporter/inventory-worker';
import type { ArchiveFiles } from '@nightporter/mongo';
import { notificationCollections } from '@nightporter/notification-worker';
import { ordersCollections, type OrderDocument } from '@nightporter/orders-api';
import { pointsCollections } from '@nightporter/points-worker';
import { shipmentsOf } from '@nightporter/shipping-worker';
import type { MongoClient } from 'mongodb';
import type { EventReader } from './events.js';
import type { GroupNames, OrderFacts, Sum } from './facts.js';
import type { WarehouseReading } from './warehouse.js';

export interface Databases {
  readonly orders: string;
  readonly inventory: string;
  readonly shipping: string;
  readonly points: string;
  /** Only where the warehouse is compared. */
  readonly warehouse?: string;
  /** Only where it is compared what customers were told. */
  readonly notification?: string;
}

export interface FactsQuery {
  readonly client: MongoClient;
  readonly databases: Databases;
  readonly groups: GroupNames;
  /** Orders changed at this time or later; null: all. */
  readonly since: Date | null;
  /** Orders that changed later than this may still be under way. */
  readonly until: Date;
  /** What the warehouse says; absent: it is not compared. */
  readonly warehouse?: WarehouseReading;
  /** Where events lie that retention has moved to files; absent: those are not read, and it is said. */
  readonly archive?: ArchiveFiles;
}

/** Orders whose facts are read together, in a constant number of queries: few enough for the lists of their events, which queries name, to stay short. */
const BATCH = 100;

export async function* readOrderFacts(query: FactsQuery, events: EventReader): AsyncGenerator<readonly OrderFacts[]> {
  const { client, databases, since, until } = query;
  const { orders } = ordersCollections(client.db(databases.orders));
  const updatedAt = since === null ? { $lt: until } : { $gte: since, $lt: until };
  let batch: OrderDocument[] = [];
  for await (const order of orders.find({ updatedAt }).batchSize(BATCH)) {
    batch.push(order);
    if (batch.length < BATCH) continue;
    yield await factsOf(batch, query, events);
    batch = [];
  }
  if (batch.length > 0) yield await factsOf(batch, query, events);
}

async function factsOf(
  orders: readonly OrderDocument[],
  query: FactsQuery,
  reader: EventReader,
): Promise<readonly OrderFacts[]> {
  const { client, databases } = query;
  const ids = orders.map(({ _id }) => _id);
  const { payments, refunds } = ordersCollections(client.db(databases.orders));
  const [paid, due, reservations, shipments, awards, notifications, rows] = await Promise.all([
    payments.find({ orderId: { $in: ids } }).toArray(),
    refunds.find({ orderId: { $in: ids } }).toArray(),
    inventoryCollections(client.db(databases.inventory))
      .reservations.find({ _id: { $in: ids } })
      .toArray(),
    shipmentsOf(client.db(databases.shipping))
      .find({ _id: { $in: ids } })
      .toArray(),
    pointsCollections(client.db(databases.points))
      .awards.find({ _id: { $in: ids } })
      .toArray(),
    databases.notification === undefined
      ? []
      : notificationCollections(client.db(databases.notification))
          .notifications.find({ orderId: { $in: ids } })
          .toArray(),
    reader.rowsOf(ids),
  ]);
  const [events, landed] = await Promise.all([reader.factsOf(rows), query.warehouse?.landedOf(rows)]);
  const paymentsOf = groupBy(paid, ({ orderId }) => orderId);
  const refundsOf = groupBy(due, ({ orderId }) => orderId);
  const notificationsOf = groupBy(notifications, ({ orderId }) => orderId);
  const byId = <Item extends { _id: string }>(items: readonly Item[]) => new Map(items.map((item) => [item._id, item]));
  const [reservationOf, shipmentOf, awardOf] = [byId(reservations), byId(shipments), byId(awards)];
  return orders.map((order) => ({
    order,
    payments: paymentsOf.get(order._id) ?? [],
    refunds: refundsOf.get(order._id) ?? [],
    reservation: reservationOf.get(order._id) ?? null,
    shipment: shipmentOf.get(order._id) ?? null,
    award: awardOf.get(order._id) ?? null,
    events: events.get(order._id) ?? [],
    landed: landed?.get(order._id) ?? [],
    notifications: notificationsOf.get(order._id) ?? [],
  }));
}

/** Which of these orders have changed since they were read: they are under way again, and what was read of them belongs to no one moment. */
export async function changedSince(
  { client, databases }: FactsQuery,
  orders: readonly OrderDocument[],
): Promise<ReadonlySet<string>> {
  if (orders.length === 0) return new Set();
  const versions = new Map(orders.map(({ _id, version }) => [_id, version]));
  const now = await ordersCollections(client.db(databases.orders))
    .orders.find({ _id: { $in: [...versions.keys()] } })
    .project<Pick<OrderDocument, '_id' | 'version'>>({ version: 1 })
    .toArray();
  return new Set(now.flatMap(({ _id, version }) => (versions.get(_id) === version ? [] : [_id])));
}

/** Pieces on hold and shipped, beside the reservations that hold and shipped them. */
export async function readStockSums({ client, databases }: FactsQuery): Promise<readonly Sum[]> {
  const { stock, reservations } = inventoryCollections(client.db(databases.inventory));
  const held = new Map<string, number>();
  for await (const { state, lines } of reservations.find({ state: { $in: ['reserved', 'committed'] } })) {
    const place = state === 'reserved' ? 'reserved' : 'shipped';
    for (const { productId, quantity } of lines) {
      const key = stockName(place, productId);
      held.set(key, (held.get(key) ?? 0) + quantity);
    }
  }
  const sums: Sum[] = [];
  for await (const { _id, reserved, shipped } of stock.find()) {
    for (const [place, kept] of [
      ['reserved', reserved],
      ['shipped', shipped],
    ] as const) {
      sums.push({ of: stockName(place, _id), kept, addsUpTo: held.get(stockName(place, _id)) ?? 0 });
      held.delete(stockName(place, _id));
    }
  }
  // Of products whose stock is gone.
  for (const [of, addsUpTo] of held) sums.push({ of, kept: 0, addsUpTo });
  return sums;
}

function stockName(place: 'reserved' | 'shipped', productId: string): string {
  return `${place} stock of ${productId}`;
}

/** The balance of every customer, beside the awards that it consists of. */
export async function readPointSums({ client, databases }: FactsQuery): Promise<readonly Sum[]> {
  const { accounts, awards } = pointsCollections(client.db(databases.points));
  const totals = new Map<string, number>();
  for await (const { customerId, points } of awards.find({ state: 'awarded' }))
    totals.set(customerId, (totals.get(customerId) ?? 0) + points);
  const sums: Sum[] = [];
  for await (const { _id, balance } of accounts.find()) {
    sums.push({ of: `balance of customer ${_id}`, kept: balance, addsUpTo: totals.get(_id) ?? 0 });
    totals.delete(_id);
  }
  for (const [customer, addsUpTo] of totals) {
    if (addsUpTo !== 0) sums.push({ of: `balance of customer ${customer}`, kept: 0, addsUpTo });
  }
  return sums;
}

export function groupBy<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
