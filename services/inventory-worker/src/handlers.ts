import type { ordersCatalogue } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { ContextOf, HandlersOf } from '@nightporter/worker';
import type { ClientSession } from 'mongodb';
import type { InventoryCollections, MovementKind, ReservationDocument, ReservationState } from './documents.js';
import {
  decideReservation,
  perProduct,
  stepOf,
  type Shortage,
  type StockLine,
  type StockPlace,
} from './domain/stock.js';

type Events = typeof ordersCatalogue.events;
type Context = ContextOf<Events, 'OrderCreated' | 'OrderPaid' | 'OrderCancelled'>;

const EVENT_OF = {
  committed: 'InventoryCommitted',
  released: 'InventoryReleased',
  returned: 'InventoryReturned',
} as const;

/**
 * Reserves stock for a new order, lets it go when the order is paid, and takes it back when the order is cancelled. Strategy: state
 * machine. Every step is allowed from one state of the reservation only. Everything is written through the session.
 */
export function createInventoryHandlers(collections: InventoryCollections): HandlersOf<Events> {
  return {
    OrderCreated: (context) => reserve(context, collections),
    OrderPaid: (context) => step(context, 'paid', collections),
    OrderCancelled: (context) => step(context, 'cancelled', collections),
  };
}

async function reserve(context: ContextOf<Events, 'OrderCreated'>, collections: InventoryCollections): Promise<void> {
  const { lines } = context.event.data;
  const orderId = context.event.aggregateId;
  const before = await reservationBefore(context, collections);
  const available = await availableOf(lines, context.session, collections);
  const decision = decideReservation(before.state, lines, available);
  if (decision.kind === 'nothing') {
    await record(context, { ...before, kind: 'nothing-to-reserve', shortages: [] }, collections);
    return;
  }
  if (decision.kind === 'reject') {
    const { shortages } = decision;
    await record(context, { kind: 'rejected', state: 'rejected', lines: [], shortages }, collections);
    await context.emit({ ...reservationOf(context), eventType: 'InventoryRejected', payload: { orderId, shortages } });
    return;
  }
  await move({ lines: decision.lines, from: 'available', to: 'reserved' }, context.session, collections);
  await record(context, { kind: 'reserved', state: 'reserved', lines: decision.lines, shortages: [] }, collections);
  await context.emit({
    ...reservationOf(context),
    eventType: 'InventoryReserved',
    payload: { orderId, lines: decision.lines },
  });
}

async function step(
  context: ContextOf<Events, 'OrderPaid' | 'OrderCancelled'>,
  cause: 'paid' | 'cancelled',
  collections: InventoryCollections,
): Promise<void> {
  const orderId = context.event.aggregateId;
  const before = await reservationBefore(context, collections);
  const next = stepOf(cause, before.state);
  if (next.kind === 'nothing') {
    const kind = cause === 'paid' ? 'nothing-to-commit' : 'nothing-to-release';
    await record(context, { ...before, kind, shortages: [] }, collections);
    return;
  }
  const { lines } = before;
  await move({ lines, from: next.from, to: next.to }, context.session, collections);
  await record(context, { kind: next.state, state: next.state, lines, shortages: [] }, collections);
  await context.emit({ ...reservationOf(context), eventType: EVENT_OF[next.state], payload: { orderId, lines } });
}

async function reservationBefore(
  { event, session }: Context,
  { reservations }: InventoryCollections,
): Promise<Pick<ReservationDocument, 'state' | 'lines'>> {
  const reservation = await reservations.findOne({ _id: event.aggregateId }, { session });
  return { state: reservation?.state ?? 'none', lines: reservation?.lines ?? [] };
}

async function availableOf(
  lines: readonly StockLine[],
  session: ClientSession,
  { stock }: InventoryCollections,
): Promise<ReadonlyMap<string, number>> {
  const ids = perProduct(lines).map(({ productId }) => productId);
  const documents = await stock.find({ _id: { $in: ids } }, { session }).toArray();
  return new Map(documents.map(({ _id, available }) => [_id, available]));
}

/** Moves pieces from one place to another; the filter keeps every place from ever becoming negative. */
async function move(
  { lines, from, to }: { lines: readonly StockLine[]; from: StockPlace; to: StockPlace },
  session: ClientSession,
  { stock }: InventoryCollections,
): Promise<void> {
  const result = await stock.bulkWrite(
    lines.map(({ productId, quantity }) => ({
      updateOne: {
        filter: { _id: productId, [from]: { $gte: quantity } },
        update: { $inc: { [from]: -quantity, [to]: quantity } },
      },
    })),
    { session },
  );
  if (result.modifiedCount === lines.length) return;
  // The same transaction has just read that it fits.
  throw new NightporterError(
    'NP_INTERNAL',
    `cannot move ${JSON.stringify(lines)} from ${from} to ${to}: the stock does not hold it`,
  );
}

interface Movement {
  readonly kind: MovementKind;
  readonly state: ReservationState;
  readonly lines: readonly StockLine[];
  readonly shortages: readonly Shortage[];
}

async function record(
  { event, session }: Context,
  movement: Movement,
  collections: InventoryCollections,
): Promise<void> {
  const { kind, state, lines, shortages } = movement;
  const now = new Date();
  const cause = { eventId: event.eventId, aggregateVersion: event.aggregateVersion };
  const reservation = await collections.reservations.findOneAndUpdate(
    { _id: event.aggregateId },
    { $set: { state, lines, ...cause, updatedAt: now }, $inc: { movements: 1 } },
    { session, upsert: true, returnDocument: 'after' },
  );
  if (reservation === null)
    throw new NightporterError('NP_INTERNAL', `reservation ${event.aggregateId} was not written`);
  await collections.movements.insertOne(
    {
      orderId: event.aggregateId,
      sequence: reservation.movements,
      kind,
      lines,
      shortages,
      ...cause,
      eventType: event.eventType,
      at: now,
    },
    { session },
  );
}

/** The reservation of an order has the order's id. */
function reservationOf({ event }: Context): { readonly aggregateType: 'reservation'; readonly aggregateId: string } {
  return { aggregateType: 'reservation', aggregateId: event.aggregateId };
}
