import type { OutboxDocument } from '@nightporter/contracts';
import { inventoryCollections } from '@nightporter/inventory-worker';
import { CONSUMER_COLLECTIONS, OUTBOX_COLLECTIONS, type InboxDocument, type ParkedDocument } from '@nightporter/mongo';
import { notificationCollections } from '@nightporter/notification-worker';
import { ordersCollections, type OrderDocument } from '@nightporter/orders-api';
import { pointsCollections } from '@nightporter/points-worker';
import { shipmentsOf } from '@nightporter/shipping-worker';
import type { Db, Filter, MongoClient } from 'mongodb';
import type { EventFacts, GroupNames, OrderFacts, Sum } from './facts.js';
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
}

/** Orders whose facts are read together, in a constant number of queries. */
const BATCH = 500;

export async function* readOrderFacts(query: FactsQuery): AsyncGenerator<readonly OrderFacts[]> {
  const { client, databases, since, until } = query;
  const { orders } = ordersCollections(client.db(databases.orders));
  const updatedAt = since === null ? { $lt: until } : { $gte: since, $lt: until };
  let batch: OrderDocument[] = [];
  for await (const order of orders.find({ updatedAt }).batchSize(BATCH)) {
    batch.push(order);
    if (batch.length < BATCH) continue;
    yield await factsOf(batch, query);
    batch = [];
  }
  if (batch.length > 0) yield await factsOf(batch, query);
}

async function factsOf(orders: readonly OrderDocument[], query: FactsQuery): Promise<readonly OrderFacts[]> {
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
    readRows(ids, query),
  ]);
  const [events, landed] = await Promise.all([eventFactsOf(rows, query), query.warehouse?.landedOf(rows)]);
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

/** The roles whose groups read events; each group's inbox is in the database of its role. */
const HOMES = ['inventory', 'shipping', 'orders', 'points', 'warehouse', 'notification'] as const;
const PRODUCERS = [
  ['orders', 'order'],
  ['inventory', 'reservation'],
  ['shipping', 'shipment'],
] as const;

async function readRows(ids: readonly string[], { client, databases }: FactsQuery): Promise<readonly OutboxDocument[]> {
  const rows = await Promise.all(
    PRODUCERS.map(([producer, aggregateType]) =>
      client
        .db(databases[producer])
        .collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox)
        .find({ source: producer, aggregateType, aggregateId: { $in: ids } } as Filter<OutboxDocument>)
        .sort({ aggregateVersion: 1 })
        .toArray(),
    ),
  );
  return rows.flat();
}

/** The events of orders, by order. */
export async function readEventFacts(
  orderIds: readonly string[],
  query: FactsQuery,
): Promise<ReadonlyMap<string, readonly EventFacts[]>> {
  return eventFactsOf(await readRows(orderIds, query), query);
}

async function eventFactsOf(
  found: readonly OutboxDocument[],
  { client, databases, groups }: FactsQuery,
): Promise<ReadonlyMap<string, readonly EventFacts[]>> {
  const eventIds = found.map(({ _id }) => _id);
  const outcomes = await Promise.all(
    HOMES.map(async (role) => {
      const [database, group] = [databases[role], groups[role]];
      if (database === undefined || group === undefined) return null;
      return { group, outcomes: await outcomesOf(client.db(database), group, eventIds) };
    }),
  );
  const facts = found.map((row) => ({
    aggregateId: row.aggregateId,
    eventId: row._id,
    eventType: row.eventType,
    aggregateType: row.aggregateType,
    version: row.aggregateVersion,
    status: row.status,
    transactionId: transactionOf(row),
    groups: Object.fromEntries(
      outcomes.flatMap((of) => {
        const outcome = of?.outcomes.get(row._id);
        return of === null || outcome === undefined ? [] : [[of.group, outcome]];
      }),
    ),
  }));
  return groupBy(facts, ({ aggregateId }) => aggregateId);
}

function transactionOf({ payload }: OutboxDocument): string | null {
  const transactionId = isRecord(payload) ? payload['transactionId'] : null;
  return typeof transactionId === 'string' ? transactionId : null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

async function outcomesOf(db: Db, group: string, eventIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const [inbox, parked] = await Promise.all([
    db
      .collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox)
      .find({ group, eventId: { $in: eventIds } } as Filter<InboxDocument>)
      .toArray(),
    db
      .collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked)
      .find({ group, 'event.eventId': { $in: eventIds } } as Filter<ParkedDocument>)
      .toArray(),
  ]);
  return new Map([
    ...parked.map(({ event, state }) => [event.eventId as string, `parked (${state})`] as const),
    ...inbox.map(({ appliedDigest, digest, eventId, outcome }) => {
      const isEdited = outcome === 'applied' && appliedDigest !== digest;
      return [eventId, isEdited ? 'applied (edited)' : outcome] as const;
    }),
  ]);
}

/** Pieces on hold and shipped, beside the reservations that hold and shipped them. */
export async function readStockSums({ client, databases }: FactsQuery): Promise<readonly Sum[]> {
  const { stock, reservations } = inventoryCollections(client.db(databases.inventory));
  const held = new Map<string, number>();
  for await (const { state, lines } of reservations.find({ state: { $in: ['reserved', 'committed'] } })) {
    const place = state === 'reserved' ? 'reserved' : 'shipped';
    for (const { productId, quantity } of lines) {
      const key = `${place} ${productId}`;
      held.set(key, (held.get(key) ?? 0) + quantity);
    }
  }
  const sums: Sum[] = [];
  for await (const { _id, reserved, shipped } of stock.find()) {
    for (const [place, kept] of [
      ['reserved', reserved],
      ['shipped', shipped],
    ] as const)
      sums.push({ of: `${place} stock of ${_id}`, kept, addsUpTo: held.get(`${place} ${_id}`) ?? 0 });
  }
  return sums;
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
