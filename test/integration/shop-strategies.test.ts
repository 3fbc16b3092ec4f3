import type { ordersCatalogue, EventEnvelope, JsonValue } from '@nightporter/contracts';
import {
  createInventoryHandlers,
  ensureInventoryCollections,
  inventoryCollections,
} from '@nightporter/inventory-worker';
import { connectMongo } from '@nightporter/mongo';
import { applyCommand, ensureOrdersCollections, ordersCollections, type OrderCommand } from '@nightporter/orders-api';
import { createOrdersHandlers } from '@nightporter/orders-worker';
import { createPointsHandlers, ensurePointsCollections, pointsCollections } from '@nightporter/points-worker';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { createLogger } from '@nightporter/runtime';
import type { ContextOf, HandlersOf } from '@nightporter/worker';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';

type Events = typeof ordersCatalogue.events;
type AnyHandler = (
  context: Pick<ContextOf<Events, 'OrderCreated'>, 'session' | 'emit' | 'logger'> & { readonly event: EventEnvelope },
) => Promise<void>;

const logger = createLogger({ name: 'strategies', level: 'silent' });
const database = uniqueName('strategies');
let client: MongoClient;

beforeAll(async () => {
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await ensureInventoryCollections(client, database);
  await ensureOrdersCollections(client, database);
});
afterAll(async () => {
  await client.db(database).dropDatabase();
  await client.close();
});

/** The story of an order, one event after another. */
function storyOf(orderId: string, ...story: readonly (readonly [eventType: string, data: JsonValue])[]) {
  return story.map(([eventType, data], index): EventEnvelope => ({
    eventId: eventId(`${orderId}-${index + 1}`),
    source: 'orders',
    eventType,
    eventVersion: 1,
    aggregateType: 'order',
    aggregateId: orderId,
    aggregateVersion: aggregateVersion(index + 1),
    occurredAt: '2026-01-02T03:04:05.678Z',
    data,
  }));
}

/** Runs the events as a group with an empty inbox does, and returns what their handlers emit. */
async function run(handlers: HandlersOf<Events>, events: readonly EventEnvelope[]): Promise<readonly string[]> {
  const emitted: string[] = [];
  for (const event of events) {
    const handler = handlers[event.eventType as keyof typeof handlers] as unknown as AnyHandler;
    const emit = ({ eventType }: { readonly eventType: string }): Promise<void> => {
      emitted.push(`${event.aggregateId}: ${eventType}`);
      return Promise.resolve();
    };
    await client.withSession((session) => session.withTransaction(() => handler({ event, session, emit, logger })));
  }
  return emitted;
}

it('A second run of the orders over the same stock, with an inbox that knows none of them, moves nothing and tells nothing', async () => {
  const collections = inventoryCollections(client.db(database));
  const handlers = createInventoryHandlers(collections);
  await collections.stock.insertOne({ _id: 'apple', available: 10, reserved: 0, shipped: 0 });
  const created = (quantity: number) => ['OrderCreated', { lines: [{ productId: 'apple', quantity }] }] as const;
  const events = [
    ...storyOf('new', created(1)),
    ...storyOf('paid', created(2), ['OrderPaid', {}]),
    ...storyOf('cancelled', created(3), ['OrderCancelled', {}]),
    ...storyOf('returned', created(4), ['OrderPaid', {}], ['OrderCancelled', {}]),
    ...storyOf('short', created(50), ['OrderCancelled', {}]),
  ];
  const emitted = await run(handlers, events);
  expect(emitted).toHaveLength(9);
  const stock = await collections.stock.findOne({ _id: 'apple' });
  expect(stock).toMatchObject({ available: 7, reserved: 1, shipped: 2 });
  const states = () =>
    collections.reservations
      .find({}, { projection: { state: 1, lines: 1 } })
      .sort({ _id: 1 })
      .toArray();
  const before = await states();

  expect(await run(handlers, events)).toEqual([]);

  expect(await collections.stock.findOne({ _id: 'apple' })).toEqual(stock);
  expect(await states()).toEqual(before);
  // Each run is on record all the same: who looks for events that took effect twice must see it.
  expect(await collections.movements.countDocuments()).toBe(2 * events.length);
});

it('An order that was cancelled before its parcel came stays cancelled; an event of an order that is not there fails', async () => {
  const collections = ordersCollections(client.db(database));
  const handlers = createOrdersHandlers(collections);
  const commands: OrderCommand[] = [
    {
      kind: 'create',
      orderId: 'too-late',
      customerId: 'ada',
      currency: 'EUR',
      lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 100 }],
    },
    { kind: 'cancel', reason: 'changed my mind' },
  ];
  for (const command of commands) {
    await client.withSession((session) =>
      session.withTransaction(async () => {
        const request = { orderId: 'too-late', command, expected: { kind: 'any' } } as const;
        const outcome = await applyCommand({ session, emit: () => Promise.resolve() }, request, collections);
        expect(outcome.kind).toBe('accepted');
      }),
    );
  }
  const before = await collections.orders.findOne({ _id: 'too-late' });
  const delivered = (orderId: string) => storyOf(`shipment of ${orderId}`, ['ShipmentDelivered', { orderId }]);

  expect(await run(handlers, delivered('too-late'))).toEqual([]);
  expect(await collections.orders.findOne({ _id: 'too-late' })).toEqual(before);
  expect(before).toMatchObject({ status: 'CANCELLED' });
  await expect(run(handlers, delivered('nobody'))).rejects.toThrow('Order nobody refuses what the event asks for');
});

it('A second run of the orders over the same points, with an inbox that knows none of them, awards and takes back nothing', async () => {
  const collections = pointsCollections(client.db(database));
  await ensurePointsCollections(client, database);
  const handlers = createPointsHandlers(collections);
  const created = ['OrderCreated', { customerId: 'ben' }] as const;
  const paid = ['OrderPaid', { amountMinor: 500 }] as const;
  const events = [
    ...storyOf('points-paid', created, paid),
    ...storyOf('points-returned', created, paid, ['OrderCancelled', {}]),
    ...storyOf('points-open', created),
  ];
  await run(handlers, events);
  const awards = () => collections.awards.find({}, { sort: { _id: 1 } }).toArray();
  const before = await awards();
  expect(before.map(({ _id, points, state, version }) => [_id, points, state, version])).toEqual([
    ['points-open', 0, 'open', 1],
    ['points-paid', 5, 'awarded', 2],
    ['points-returned', 5, 'reversed', 3],
  ]);
  expect(await collections.accounts.findOne({ _id: 'ben' })).toMatchObject({ balance: 5 });

  await run(handlers, events);
  expect(await awards()).toEqual(before);
  expect(await collections.accounts.findOne({ _id: 'ben' })).toMatchObject({ balance: 5 });

  // Whatever its state: an event that is not newer than what the order took up last is not taken up.
  await collections.awards.updateOne({ _id: 'points-open' }, { $set: { version: 7 } });
  await run(handlers, storyOf('points-open', created, paid));
  expect(await collections.accounts.findOne({ _id: 'ben' })).toMatchObject({ balance: 5 });
});
