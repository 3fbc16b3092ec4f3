import type { ordersCatalogue } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { ContextOf, HandlersOf } from '@nightporter/worker';
import type { ClientSession } from 'mongodb';
import type { InventoryCollections, MovementKind, ReservationState } from './documents.js';
import { decideReservation, perProduct, type Shortage, type StockLine } from './domain/stock.js';

type Events = typeof ordersCatalogue.events;
type Context = ContextOf<Events, 'OrderCreated' | 'OrderCancelled'>;

/** Reserves stock for a new order and gives it back when the order is cancelled. Everything is written through the session. */
export function createInventoryHandlers(collections: InventoryCollections): HandlersOf<Events> {
  const onOrderCreated = async (context: ContextOf<Events, 'OrderCreated'>): Promise<void> => {
    const { lines } = context.event.data;
    const orderId = context.event.aggregateId;
    const decision = decideReservation(lines, await availableOf(lines, context.session, collections));
    if (decision.kind === 'reject') {
      const { shortages } = decision;
      await record(context, { kind: 'rejected', state: 'rejected', lines: [], shortages }, collections);
      await context.emit({
        ...reservationOf(context),
        eventType: 'InventoryRejected',
        payload: { orderId, shortages },
      });
      return;
    }
    await move(decision.lines, 'reserve', context.session, collections);
    await record(context, { kind: 'reserved', state: 'reserved', lines: decision.lines, shortages: [] }, collections);
    await context.emit({
      ...reservationOf(context),
      eventType: 'InventoryReserved',
      payload: { orderId, lines: decision.lines },
    });
  };

  const onOrderCancelled = async (context: ContextOf<Events, 'OrderCancelled'>): Promise<void> => {
    const orderId = context.event.aggregateId;
    const reservation = await collections.reservations.findOne({ _id: orderId }, { session: context.session });
    if (reservation?.state !== 'reserved') {
      const state = reservation?.state ?? 'none';
      await record(context, { kind: 'nothing-to-release', state, lines: [], shortages: [] }, collections);
      return;
    }
    const { lines } = reservation;
    await move(lines, 'release', context.session, collections);
    await record(context, { kind: 'released', state: 'released', lines, shortages: [] }, collections);
    await context.emit({ ...reservationOf(context), eventType: 'InventoryReleased', payload: { orderId, lines } });
  };

  return { OrderCreated: onOrderCreated, OrderCancelled: onOrderCancelled };
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

/** Moves pieces between `available` and `reserved`; the filters keep either from ever becoming negative. */
async function move(
  lines: readonly StockLine[],
  direction: 'reserve' | 'release',
  session: ClientSession,
  { stock }: InventoryCollections,
): Promise<void> {
  const result = await stock.bulkWrite(
    lines.map(({ productId, quantity }) =>
      direction === 'reserve'
        ? {
            updateOne: {
              filter: { _id: productId, available: { $gte: quantity } },
              update: { $inc: { available: -quantity, reserved: quantity } },
            },
          }
        : {
            updateOne: {
              filter: { _id: productId, reserved: { $gte: quantity } },
              update: { $inc: { available: quantity, reserved: -quantity } },
            },
          },
    ),
    { session },
  );
  if (result.modifiedCount === lines.length) return;
  // The same transaction has just read that it fits.
  throw new NightporterError('NP_INTERNAL', `cannot ${direction} ${JSON.stringify(lines)}: the stock does not hold it`);
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
