import type { OutboxDocument } from '@nightporter/contracts';
import type { MovementDocument, MovementKind } from '@nightporter/inventory-worker';
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
  const held = new Map<string, number>();
  for (const { state, lines } of reservations) {
    if (state !== 'reserved') continue;
    for (const { productId, quantity } of lines) held.set(productId, (held.get(productId) ?? 0) + quantity);
  }
  const moved = movedPieces(movements);
  const shelf = new Map(stock.map((found) => [found._id, found]));
  // From what was put there, not from what is found: a product that is gone would have nobody to speak for it.
  return [...new Set([...start.keys(), ...shelf.keys()])].flatMap((productId): readonly Violation[] => {
    const found = shelf.get(productId);
    if (found === undefined) return [ofStock(productId, 'is gone')];
    const { available, reserved } = found;
    const initial = start.get(productId) ?? 0;
    const problems = [
      available < 0 || reserved < 0 ? `is negative (${available} available, ${reserved} reserved)` : null,
      available + reserved === initial ? null : `has ${available + reserved} pieces, but began with ${initial}`,
      reserved === (held.get(productId) ?? 0)
        ? null
        : `has ${reserved} reserved, but orders hold ${held.get(productId) ?? 0}`,
      reserved === (moved.get(productId) ?? 0)
        ? null
        : `has ${reserved} reserved, but its movements add up to ${moved.get(productId) ?? 0}`,
    ];
    return problems.filter((problem) => problem !== null).map((problem) => ofStock(productId, problem));
  });
}

function ofStock(productId: string, problem: string): Violation {
  return { kind: 'altered', eventId: '', detail: `the stock of ${productId} ${problem}` };
}

function movedPieces(movements: readonly MovementDocument[]): ReadonlyMap<string, number> {
  const moved = new Map<string, number>();
  for (const { kind, lines } of movements) {
    const sign = kind === 'reserved' ? 1 : kind === 'released' ? -1 : 0;
    for (const { productId, quantity } of lines) moved.set(productId, (moved.get(productId) ?? 0) + sign * quantity);
  }
  return moved;
}

/** A cancelled order holds nothing; every other one was reserved, or rejected because something was short. */
function checkReservations({ orders, reservations }: Evidence): readonly Violation[] {
  const byOrder = new Map(reservations.map((reservation) => [reservation._id, reservation]));
  return orders.flatMap(({ _id: orderId, status }): readonly Violation[] => {
    const state = byOrder.get(orderId)?.state ?? 'none';
    const accepted = status === 'CANCELLED' ? ['released', 'rejected'] : ['reserved', 'rejected'];
    if (accepted.includes(state)) return [];
    const detail = `${orderId} is ${status}, and its reservation is ${state}`;
    return [{ kind: 'lost', eventId: byOrder.get(orderId)?.eventId ?? '', detail }];
  });
}

const EMITTED: Readonly<Record<MovementKind, string | null>> = {
  reserved: 'InventoryReserved',
  rejected: 'InventoryRejected',
  released: 'InventoryReleased',
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
