import type { OutboxDocument } from '@nightporter/contracts';
import { aggregateKey } from '@nightporter/protocol';
import type { Order } from '@nightporter/orders-api';
import type { Violation } from '@nightporter/testing';
import type { Evidence } from './evidence.js';
import type { Acknowledged } from './traffic.js';

/** What the workers make of an order by themselves, and because of which event. */
const CONSEQUENCES: Readonly<Record<string, string>> = {
  OrderCompleted: 'ShipmentDelivered',
  OrderCancelled: 'InventoryRejected',
};

/**
 * Every acknowledged command has its event, at its version; and there is no event of an order that nobody asked for, neither a client nor an
 * event that has just this consequence.
 */
export function checkAcknowledged(
  acknowledged: readonly Acknowledged[],
  rows: readonly OutboxDocument[],
): readonly Violation[] {
  const place = (orderId: string, version: number): string => `${version} ${orderId}`;
  const orderRows = rows.filter(({ aggregateType }) => aggregateType === 'order');
  const rowAt = new Map(orderRows.map((row) => [place(row.aggregateId, row.aggregateVersion), row]));
  const promised = new Set<string>();
  const missing = acknowledged.flatMap(({ orderId, version, eventType }): readonly Violation[] => {
    promised.add(place(orderId, version));
    const row = rowAt.get(place(orderId, version));
    if (row?.eventType === eventType) return [];
    const found = row === undefined ? 'the outbox has none' : `the outbox has ${row.eventType}`;
    return [
      {
        kind: 'lost',
        eventId: row?._id ?? '',
        detail: `${eventType} of ${orderId} was acknowledged as version ${version}, but ${found}`,
      },
    ];
  });
  const typeOf = new Map<string, string>(rows.map(({ _id, eventType }) => [_id, eventType]));
  const phantoms = orderRows.filter(
    (row) =>
      !promised.has(place(row.aggregateId, row.aggregateVersion)) &&
      (CONSEQUENCES[row.eventType] === undefined ||
        typeOf.get(row.headers.causationId ?? '') !== CONSEQUENCES[row.eventType]),
  );
  return [
    ...missing,
    ...phantoms.map((row): Violation => ({
      kind: 'phantom',
      eventId: row._id,
      detail: `${row.eventType} of ${row.aggregateId} is in the outbox as version ${row.aggregateVersion}, but neither a command that was acknowledged nor an event led to it`,
    })),
  ];
}

const STATUS_AFTER: Readonly<Record<string, Order['status']>> = {
  OrderCreated: 'CREATED',
  OrderPaid: 'PAID',
  OrderCompleted: 'COMPLETED',
  OrderCancelled: 'CANCELLED',
};

/** The orders themselves are what the API answered last, or what the workers have made of that, at the version of their last event and head. */
export function checkOrders(
  answered: ReadonlyMap<string, Order>,
  { orders, heads, rows }: Evidence,
): readonly Violation[] {
  const documents = new Map(orders.map((document) => [document._id, document]));
  const headVersions = new Map(heads.map(({ _id, version }) => [_id, version as number]));
  const ofOrders = rows.filter(({ aggregateType }) => aggregateType === 'order');
  const typeAt = new Map(ofOrders.map((row) => [`${row.aggregateVersion} ${row.aggregateId}`, row.eventType]));
  const source = ofOrders[0]?.source ?? '';
  return [...answered].flatMap(([orderId, order]): readonly Violation[] => {
    const found = documents.get(orderId);
    const head = headVersions.get(aggregateKey({ source, aggregateType: 'order', aggregateId: orderId }));
    if (found !== undefined && head === found.version && found.version >= order.version) {
      const expected =
        found.version === order.version
          ? order.status
          : STATUS_AFTER[typeAt.get(`${found.version} ${orderId}`) ?? 'nothing'];
      if (found.status === expected) return [];
    }
    const stands =
      found === undefined
        ? 'is not there'
        : `is ${found.status} at version ${found.version}, its head at ${head ?? 'none'}`;
    return [
      {
        kind: 'lost',
        eventId: '',
        detail: `${orderId} was answered ${order.status} at version ${order.version}, but ${stands}`,
      },
    ];
  });
}
