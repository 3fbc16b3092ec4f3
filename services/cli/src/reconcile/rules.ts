/** What must hold between the services once an order is at rest. Pure: facts in, differences out. */
import { TOLD_TYPES } from '@nightporter/notification-worker';
import { pointsFor } from '@nightporter/points-worker';
import type { Difference, EventFacts, GroupNames, LandedFacts, OrderFacts, Sum } from './facts.js';
import { moneyOf } from './money.js';

interface Finding {
  readonly between: string;
  readonly detail: string;
  /** The aggregates and groups whose events lead to what is missing, in the order of the story. */
  readonly story: readonly (readonly [
    aggregateType: string,
    group: Exclude<keyof GroupNames, 'warehouse' | 'notification'>,
  ])[];
}

const STOCK = [['order', 'inventory']] as const;
const SHIPMENT = [...STOCK, ['reservation', 'shipping']] as const;
const COMPLETION = [...SHIPMENT, ['reservation', 'orders'], ['shipment', 'orders']] as const;
const POINTS = [['order', 'points']] as const;

/** The state of the reservation that belongs to each status of an order at rest. */
const RESERVATIONS: Readonly<Record<OrderFacts['order']['status'], readonly string[]>> = {
  CREATED: ['reserved'],
  PAID: ['committed'],
  COMPLETED: ['committed'],
  CANCELLED: ['released', 'returned', 'rejected', 'none'],
};

export function differencesOf(facts: OrderFacts, groups: GroupNames): readonly Difference[] {
  const orderId = facts.order._id;
  const money = moneyOf(facts).map((finding) => ({ orderId, between: 'orders and payments', ...finding }));
  const findings = [...stockOf(facts), ...shipmentOf(facts), ...pointsOf(facts)];
  const between = findings.map(({ between: services, detail, story }) => ({
    orderId,
    between: services,
    detail,
    brokeAt: breakIn(facts.events, story, groups),
  }));
  const { notification, warehouse } = groups;
  return [
    ...money,
    ...between,
    ...(warehouse === undefined ? [] : warehouseDifferences(facts, warehouse)),
    ...(notification === undefined ? [] : notificationDifferences(facts, notification)),
  ];
}

/** Every event that its producer wrote is in the warehouse once, in each table that has rows for it, and as it was written. */
function warehouseDifferences({ events, landed, order }: OrderFacts, group: string): readonly Difference[] {
  const byId = new Map(events.map((event) => [event.eventId, event]));
  return landed.flatMap((one): readonly Difference[] => {
    const event = byId.get(one.eventId);
    const problem = event === undefined ? null : landedProblem(one, event.groups[group]);
    if (event === undefined || problem === null) return [];
    const { eventId, eventType } = event;
    const why = whyStopped(event, group) ?? (one.isStaged ? 'is staged, and not landed yet' : null);
    return [
      {
        orderId: order._id,
        between: 'events and warehouse',
        detail: `has ${eventType} ${eventId} ${problem}`,
        brokeAt: one.found.length > 0 || why === null ? null : { eventId, eventType, why },
      },
    ];
  });
}

const isTold = new Set<string>(TOLD_TYPES);

/** The customer was told of each event of the order that he hears of. */
function notificationDifferences(facts: OrderFacts, group: string): readonly Difference[] {
  const { events, notifications, order } = facts;
  return events
    .filter(({ aggregateType, eventType }) => aggregateType === 'order' && isTold.has(eventType))
    .flatMap((event) => {
      const { eventId, eventType } = event;
      const own = notifications.filter((notification) => notification.eventId === eventId);
      const why = whyStopped(event, group);
      const brokeAt = why === null ? null : { eventId, eventType, why };
      return toldProblems(own, { order, outcome: event.groups[group] }).map((problem) => ({
        orderId: order._id,
        between: 'events and notifications',
        detail: `has ${eventType} ${eventId}, ${problem}`,
        brokeAt,
      }));
    });
}

function toldProblems(
  own: OrderFacts['notifications'],
  { order, outcome }: { readonly order: OrderFacts['order']; readonly outcome: string | undefined },
): readonly string[] {
  // What an operator skipped, nobody is told of; once the record has expired, nobody knows whether it was.
  if (own.length === 0) return outcome === 'skipped' || outcome === 'past' ? [] : ['of which nobody is told'];
  return own.flatMap(({ _id, lastFailure, recipient, state }) => {
    if (recipient !== order.customerId)
      return [`of which ${recipient} is told by ${_id}, and the customer is ${order.customerId}`];
    switch (state) {
      case 'sent':
        return [];
      case 'pending':
        return [`whose notification ${_id} is not sent yet`];
      case 'dead':
        return [`whose notification ${_id} is dead: ${lastFailure?.message ?? 'nothing is said of why'}`];
    }
  });
}

function landedProblem({ found, table, wanted }: LandedFacts, outcome: string | undefined): string | null {
  // Nobody knows any more whether it was skipped or edited.
  if (outcome === 'past' && found.length <= 1) return null;
  // What an operator skipped, or the worker did not know, has no row; what was edited has another.
  const count = wanted === null || outcome === 'skipped' || outcome === 'ignored' ? 0 : 1;
  if (found.length !== count)
    return `${found.length} times in ${table}, and should have it ${count === 1 ? 'once' : 'not at all'}`;
  if (count === 0 || outcome?.endsWith('(edited)') === true || found[0] === wanted) return null;
  return `in ${table} otherwise than it was written`;
}

/** Sums that are kept beside what they are sums of. */
export function sumDifferences(between: string, sums: readonly Sum[]): readonly Difference[] {
  return sums
    .filter(({ kept, addsUpTo }) => kept !== addsUpTo)
    .map(({ of, kept, addsUpTo }) => ({
      orderId: null,
      between,
      detail: `${of} is ${kept}, and what it consists of adds up to ${addsUpTo}`,
      brokeAt: null,
    }));
}

function stockOf({ order, reservation }: OrderFacts): readonly Finding[] {
  const state = reservation?.state ?? 'none';
  if (RESERVATIONS[order.status].includes(state)) return piecesOf(order, reservation);
  const rejected = state === 'rejected';
  const detail = `is ${order.status}, and its stock is ${state}`;
  return [{ between: 'orders and stock', detail, story: rejected ? [['reservation', 'orders']] : STOCK }];
}

/** What is held, was shipped or went back is what was ordered, by product. */
function piecesOf({ lines }: OrderFacts['order'], reservation: OrderFacts['reservation']): readonly Finding[] {
  // A rejected one holds nothing.
  if (reservation === null || reservation.state === 'rejected') return [];
  const [ordered, held] = [piecesByProduct(lines), piecesByProduct(reservation.lines)];
  return [...new Set([...ordered.keys(), ...held.keys()])]
    .filter((product) => ordered.get(product) !== held.get(product))
    .map((product) => ({
      between: 'orders and stock',
      detail: `has ${ordered.get(product) ?? 0} of ${product}, and ${held.get(product) ?? 0} ${reservation.state}`,
      story: STOCK,
    }));
}

function piecesByProduct(
  lines: readonly { readonly productId: string; readonly quantity: number }[],
): ReadonlyMap<string, number> {
  const pieces = new Map<string, number>();
  for (const { productId, quantity } of lines) pieces.set(productId, (pieces.get(productId) ?? 0) + quantity);
  return pieces;
}

function shipmentOf({ order, reservation, shipment }: OrderFacts): readonly Finding[] {
  const wanted = { committed: 'delivered', returned: 'returned' }[reservation?.state as string] ?? 'none';
  const state = shipment?.state ?? 'none';
  if (state !== wanted)
    return [
      {
        between: 'stock and shipments',
        detail: `has ${reservation?.state ?? 'no'} stock, and its shipment is ${state}`,
        story: SHIPMENT,
      },
    ];
  if (order.status === 'PAID')
    return [{ between: 'orders and shipments', detail: `is PAID, and its shipment is ${state}`, story: COMPLETION }];
  return [];
}

function pointsOf({ order, award }: OrderFacts): readonly Finding[] {
  const paid = order.payment === null ? null : pointsFor(order.payment.amountMinor);
  const wanted = paid === null ? 'open' : order.status === 'CANCELLED' ? 'reversed' : 'awarded';
  const state = award?.state ?? 'missing';
  const points = award?.points ?? 0;
  if (award !== null && award.customerId !== order.customerId) {
    const detail = `has its points at customer ${award.customerId}, and its customer is ${order.customerId}`;
    return [{ between: 'orders and points', detail, story: POINTS }];
  }
  if (state === wanted && (paid ?? 0) === points) return [];
  return [
    {
      between: 'orders and points',
      detail: `should have ${paid ?? 0} points ${wanted}, and has ${points} ${state}`,
      story: POINTS,
    },
  ];
}

/** The first event of the story that is not published, or that its group has not settled. */
function breakIn(events: readonly EventFacts[], story: Finding['story'], groups: GroupNames): Difference['brokeAt'] {
  for (const [aggregateType, role] of story) {
    const group = groups[role];
    for (const event of events.filter((candidate) => candidate.aggregateType === aggregateType)) {
      const why = whyStopped(event, group);
      if (why !== null) return { eventId: event.eventId, eventType: event.eventType, why };
    }
  }
  return null;
}

function whyStopped({ status, groups }: EventFacts, group: string): string | null {
  if (status !== 'PUBLISHED') return `is ${status} in the outbox`;
  const outcome = groups[group];
  if (outcome === undefined) return `has not been settled by group ${group}`;
  return outcome.startsWith('parked') ? `is ${outcome} in group ${group}` : null;
}
