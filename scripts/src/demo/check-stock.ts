import type { OutboxDocument } from '@nightporter/contracts';
import type { MovementDocument, MovementKind, ReservationState } from '@nightporter/inventory-worker';
import type { OrderStatus } from '@nightporter/orders-api';
import type { Violation } from '@nightporter/testing';
import type { Evidence } from './evidence.js';

/** No piece of the stock came or went: on the shelf is what was there at the start, and reserved is what open orders hold. */
export function checkStock(evidence: Evidence, start: ReadonlyMap<string, number>): readonly Violation[] {
  return [...checkShelf(evidence, start), ...checkReservations(evidence), ...checkEmitted(evidence)];
}

function checkShelf(
  { stock, reservations, movements }: Evidence,
  start: ReadonlyMap<string, number>,
): readonly Violation[] {
  const held = { reserved: heldBy(reservations, 'reserved'), shipped: heldBy(reservations, 'committed') };
  const moved = { reserved: movedPieces(movements, 'reserved'), shipped: movedPieces(movements, 'shipped') };
  const shelf = new Map(stock.map((found) => [found._id, found]));
  // From what was put there, not from what is found: a product that is gone would have nobody to speak for it.
  return [...new Set([...start.keys(), ...shelf.keys()])].flatMap((productId): readonly Violation[] => {
    const found = shelf.get(productId);
    if (found === undefined) return [ofStock(productId, 'is gone')];
    const { available, reserved, shipped } = found;
    const initial = start.get(productId) ?? 0;
    const total = available + reserved + shipped;
    const problems = [
      Math.min(available, reserved, shipped) < 0
        ? `is negative (${available} available, ${reserved} reserved, ${shipped} shipped)`
        : null,
      total === initial ? null : `has ${total} pieces, but began with ${initial}`,
      ...(['reserved', 'shipped'] as const).flatMap((place) => [
        found[place] === (held[place].get(productId) ?? 0)
          ? null
          : `has ${found[place]} ${place}, but orders hold ${held[place].get(productId) ?? 0}`,
        found[place] === (moved[place].get(productId) ?? 0)
          ? null
          : `has ${found[place]} ${place}, but its movements add up to ${moved[place].get(productId) ?? 0}`,
      ]),
    ];
    return problems.filter((problem) => problem !== null).map((problem) => ofStock(productId, problem));
  });
}

function heldBy(reservations: Evidence['reservations'], wanted: ReservationState): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { state, lines } of reservations) {
    if (state !== wanted) continue;
    for (const { productId, quantity } of lines) held.set(productId, (held.get(productId) ?? 0) + quantity);
  }
  return held;
}

function ofStock(productId: string, problem: string): Violation {
  return { kind: 'altered', eventId: '', detail: `the stock of ${productId} ${problem}` };
}

/** By how much each kind of movement changes what is reserved, and what is shipped. */
const CHANGES: Readonly<Record<MovementKind, { readonly reserved: number; readonly shipped: number }>> = {
  reserved: { reserved: 1, shipped: 0 },
  released: { reserved: -1, shipped: 0 },
  committed: { reserved: -1, shipped: 1 },
  returned: { reserved: 0, shipped: -1 },
  rejected: { reserved: 0, shipped: 0 },
  'nothing-to-reserve': { reserved: 0, shipped: 0 },
  'nothing-to-release': { reserved: 0, shipped: 0 },
  'nothing-to-commit': { reserved: 0, shipped: 0 },
};

function movedPieces(
  movements: readonly MovementDocument[],
  place: 'reserved' | 'shipped',
): ReadonlyMap<string, number> {
  const moved = new Map<string, number>();
  for (const { kind, lines } of movements) {
    for (const { productId, quantity } of lines)
      moved.set(productId, (moved.get(productId) ?? 0) + CHANGES[kind][place] * quantity);
  }
  return moved;
}

/** A cancelled order holds nothing, a new one is reserved, a paid one has left the shelf; unless something was short. */
const ACCEPTED: Readonly<Record<OrderStatus, readonly ReservationState[]>> = {
  CREATED: ['reserved', 'rejected'],
  PAID: ['committed', 'rejected'],
  COMPLETED: ['committed', 'rejected'],
  CANCELLED: ['released', 'returned', 'rejected'],
};

function checkReservations({ orders, reservations }: Evidence): readonly Violation[] {
  const byOrder = new Map(reservations.map((reservation) => [reservation._id, reservation]));
  return orders.flatMap(({ _id: orderId, status }): readonly Violation[] => {
    const state = byOrder.get(orderId)?.state ?? 'none';
    const accepted = ACCEPTED[status];
    if (accepted.includes(state)) return [];
    const detail = `${orderId} is ${status}, and its reservation is ${state}`;
    return [{ kind: 'lost', eventId: byOrder.get(orderId)?.eventId ?? '', detail }];
  });
}

const EMITTED: Readonly<Record<MovementKind, string | null>> = {
  reserved: 'InventoryReserved',
  rejected: 'InventoryRejected',
  released: 'InventoryReleased',
  committed: 'InventoryCommitted',
  returned: 'InventoryReturned',
  'nothing-to-reserve': null,
  'nothing-to-commit': null,
  'nothing-to-release': null,
};

/** What the worker emitted is exactly what it did: one event per movement that has one, caused by the same event. */
function checkEmitted({ rows, movements }: Evidence): readonly Violation[] {
  const emitted = groupBy(
    rows.filter(({ aggregateType }) => aggregateType === 'reservation'),
    (row) => `${row.eventType} because of ${row.headers.causationId ?? 'nothing'}`,
  );
  const wanted = movements.flatMap(({ kind, eventId }) =>
    EMITTED[kind] === null ? [] : [{ name: `${EMITTED[kind]} because of ${eventId}`, eventId }],
  );
  const names = new Set(wanted.map(({ name }) => name));
  const missing = wanted.flatMap(({ name, eventId }): readonly Violation[] =>
    differenceOf(name, { eventId, found: emitted.get(name) ?? [] }),
  );
  const phantoms = [...emitted].filter(([name]) => !names.has(name)).flatMap(([, found]) => found);
  return [
    ...missing,
    ...phantoms.map(({ _id, eventType }): Violation => ({
      kind: 'phantom',
      eventId: _id,
      detail: `${eventType} was emitted without a movement of the stock`,
    })),
  ];
}

function differenceOf(
  name: string,
  { eventId, found }: { eventId: string; found: readonly OutboxDocument[] },
): readonly Violation[] {
  if (found.length === 1) return [];
  return [
    {
      kind: found.length === 0 ? 'lost' : 'doubled',
      eventId,
      detail: `${name} is in the outbox ${found.length} times`,
    },
  ];
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
