import type { OutboxDocument } from '@nightporter/contracts';
import { aggregateKey } from '@nightporter/protocol';
import type { Order } from '@nightporter/orders-api';
import type { Violation } from '@nightporter/testing';
import type { Evidence } from './evidence.js';
import type { Acknowledged } from './traffic.js';

/** Every acknowledged command has its event, at its version; and there is no event of an order that nobody asked for. */
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
  const phantoms = orderRows.filter((row) => !promised.has(place(row.aggregateId, row.aggregateVersion)));
  return [
    ...missing,
    ...phantoms.map((row): Violation => ({
      kind: 'phantom',
      eventId: row._id,
      detail: `${row.eventType} of ${row.aggregateId} is in the outbox as version ${row.aggregateVersion}, but no command was acknowledged for it`,
    })),
  ];
}

/** The orders themselves are what the API answered last, at the version of their last event and their head. */
export function checkOrders(
  answered: ReadonlyMap<string, Order>,
  { orders, heads, rows }: Evidence,
): readonly Violation[] {
  const documents = new Map(orders.map((document) => [document._id, document]));
  const headVersions = new Map(heads.map(({ _id, version }) => [_id, version as number]));
  const source = rows.find(({ aggregateType }) => aggregateType === 'order')?.source ?? '';
  return [...answered].flatMap(([orderId, order]): readonly Violation[] => {
    const found = documents.get(orderId);
    const head = headVersions.get(aggregateKey({ source, aggregateType: 'order', aggregateId: orderId }));
    if (found?.version === order.version && found.status === order.status && head === order.version) return [];
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
