/** What names an order that is not there. */
import { inventoryCollections } from '@nightporter/inventory-worker';
import { ordersCollections } from '@nightporter/orders-api';
import { pointsCollections } from '@nightporter/points-worker';
import { shipmentsOf } from '@nightporter/shipping-worker';
import type { EventReader } from './events.js';
import type { Difference, EventFacts } from './facts.js';
import type { FactsQuery } from './read-facts.js';

export interface Stray {
  readonly orderId: string;
  /** `payments`, `shipments` and so on. */
  readonly kind: string;
  /** Which one, and what it says. */
  readonly what: string;
  /** The event that led to it, where it says which. */
  readonly eventId: string | null;
}

/** Documents whose orders are looked for together. */
const BATCH = 500;

/** Walks over all payments, refunds, reservations, shipments and awards, whatever state they are in. */
export async function* readStrays(query: FactsQuery): AsyncGenerator<readonly Stray[]> {
  const { orders } = ordersCollections(query.client.db(query.databases.orders));
  for (const documents of Object.values(walks(query))) {
    for await (const batch of inBatches(documents())) {
      const ids = [...new Set(batch.map(({ orderId }) => orderId))];
      // An order is written before whatever names it, and never deleted, so that what is read later cannot be missing for its haste.
      const known = new Set(
        (await orders.find({ _id: { $in: ids } }, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id),
      );
      const strays = batch.filter(({ orderId }) => !known.has(orderId));
      if (strays.length > 0) yield strays;
    }
  }
}

function walks({ client, databases }: FactsQuery): Readonly<Record<string, () => AsyncGenerator<Stray>>> {
  const { payments, refunds } = ordersCollections(client.db(databases.orders));
  const { reservations } = inventoryCollections(client.db(databases.inventory));
  return {
    async *payments() {
      for await (const { _id, amountMinor, currency, orderId, outcome } of payments.find().batchSize(BATCH))
        yield {
          orderId,
          kind: 'payments',
          what: `payment ${_id} of ${amountMinor} ${currency} is ${outcome}`,
          eventId: null,
        };
    },
    async *refunds() {
      for await (const { _id, amountMinor, currency, orderId, state } of refunds.find().batchSize(BATCH))
        yield {
          orderId,
          kind: 'refunds',
          what: `refund of ${amountMinor} ${currency} for payment ${_id} is ${state}`,
          eventId: null,
        };
    },
    async *reservations() {
      for await (const { _id: orderId, eventId, state } of reservations.find().batchSize(BATCH))
        yield { orderId, kind: 'reservations', what: `its reservation is ${state}`, eventId };
    },
    async *shipments() {
      for await (const { _id: orderId, state } of shipmentsOf(client.db(databases.shipping)).find().batchSize(BATCH))
        yield { orderId, kind: 'shipments', what: `its shipment is ${state}`, eventId: null };
    },
    async *awards() {
      const { awards } = pointsCollections(client.db(databases.points));
      for await (const { _id: orderId, points, state } of awards.find().batchSize(BATCH))
        yield { orderId, kind: 'awards', what: `its award of ${points} points is ${state}`, eventId: null };
    },
  };
}

async function* inBatches(documents: AsyncIterable<Stray>): AsyncGenerator<readonly Stray[]> {
  let batch: Stray[] = [];
  for await (const document of documents) {
    batch.push(document);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** The differences that strays are, with the events of the orders that are not there. */
export async function strayDifferences(strays: readonly Stray[], reader: EventReader): Promise<readonly Difference[]> {
  const events = await reader.factsOf(await reader.rowsOf([...new Set(strays.map(({ orderId }) => orderId))]));
  return strays.map((stray) => strayDifference(stray, events.get(stray.orderId) ?? []));
}

export function strayDifference({ eventId, kind, orderId, what }: Stray, events: readonly EventFacts[]): Difference {
  return {
    orderId,
    between: `orders and ${kind}`,
    detail: `is not there, and ${what}`,
    brokeAt: breakOf(events, eventId),
  };
}

/** The event that wrote the order tells that it was there once; else what the document itself names as its cause. */
function breakOf(events: readonly EventFacts[], eventId: string | null): Difference['brokeAt'] {
  const created = events.find(({ eventType }) => eventType === 'OrderCreated');
  if (created !== undefined)
    return { eventId: created.eventId, eventType: created.eventType, why: 'was committed together with the order' };
  const cause = events.find((event) => event.eventId === eventId);
  if (cause !== undefined)
    return { eventId: cause.eventId, eventType: cause.eventType, why: 'led to it, and its order was never created' };
  return null;
}
