import { describe, expect, it } from 'vitest';
import type { EventFacts, OrderFacts } from './facts.js';
import { differencesOf, sumDifferences } from './rules.js';

const groups = { inventory: 'inventory', shipping: 'shipping', orders: 'orders', points: 'points' };
const withWarehouse = { ...groups, warehouse: 'warehouse' };
const event = (aggregateType: string, eventType: string, change: Partial<EventFacts> = {}): EventFacts => ({
  eventId: `id of ${eventType}`,
  eventType,
  aggregateType,
  version: 1,
  status: 'PUBLISHED',
  transactionId: null,
  groups: { inventory: 'applied', shipping: 'applied', orders: 'applied', points: 'applied' },
  ...change,
});

type Loose = Readonly<Record<keyof OrderFacts, unknown>>;

const payment = { _id: 't1', outcome: 'applied', amountMinor: 250, currency: 'EUR' };
const surplus = { ...payment, _id: 't2', outcome: 'surplus' };
const refund = { _id: 't1', amountMinor: 250, currency: 'EUR' };

const lines = [{ productId: 'apple', quantity: 3 }];

/** An order that went all the way. */
const completed: Loose = {
  order: {
    _id: 'o1',
    status: 'COMPLETED',
    totalMinor: 250,
    currency: 'EUR',
    customerId: 'ada',
    lines,
    payment: { transactionId: 't1', amountMinor: 250 },
  },
  payments: [{ _id: 't1', outcome: 'applied', amountMinor: 250, currency: 'EUR' }],
  refunds: [],
  reservation: { state: 'committed', lines },
  shipment: { state: 'delivered' },
  award: { state: 'awarded', points: 2, customerId: 'ada' },
  events: [
    event('order', 'OrderCreated'),
    event('order', 'OrderPaid', { transactionId: 't1' }),
    event('reservation', 'InventoryCommitted'),
    event('shipment', 'ShipmentDelivered'),
  ],
  landed: [],
  notifications: [],
};
/** An order that was paid and then cancelled. */
const cancelled: Loose = {
  ...completed,
  order: { ...(completed.order as object), status: 'CANCELLED' },
  refunds: [{ _id: 't1', amountMinor: 250, currency: 'EUR' }],
  reservation: { state: 'returned', lines },
  shipment: { state: 'returned' },
  award: { state: 'reversed', points: 2, customerId: 'ada' },
};

const found = (facts: Loose, change: Partial<Loose>) =>
  differencesOf({ ...facts, ...change } as unknown as OrderFacts, groups);

describe('reconciliation', () => {
  it.each([
    ['completed', completed],
    ['paid and cancelled', cancelled],
  ])('finds nothing at an order that was %s', (_name, facts) => {
    expect(found(facts, {})).toEqual([]);
  });

  it.each<[string, Loose, Partial<Loose>, string]>([
    ['a payment that nobody took down', completed, { payments: [] }, 'orders and payments'],
    [
      'a payment of another amount',
      completed,
      { payments: [{ _id: 't1', outcome: 'applied', amountMinor: 1, currency: 'EUR' }] },
      'orders and payments',
    ],
    [
      'a payment in another currency',
      completed,
      { payments: [{ _id: 't1', outcome: 'applied', amountMinor: 250, currency: 'USD' }] },
      'orders and payments',
    ],
    [
      'a refund of another amount',
      cancelled,
      { refunds: [{ _id: 't1', amountMinor: 25, currency: 'EUR' }] },
      'orders and payments',
    ],
    [
      'a refund in another currency',
      cancelled,
      { refunds: [{ _id: 't1', amountMinor: 250, currency: 'USD' }] },
      'orders and payments',
    ],
    ['a refund that nobody is owed', completed, { refunds: [{ _id: 't1' }] }, 'orders and payments'],
    ['a refund that is missing', cancelled, { refunds: [] }, 'orders and payments'],
    [
      'stock that did not leave the shelf',
      completed,
      { reservation: { state: 'reserved' }, shipment: null },
      'orders and stock',
    ],
    [
      'stock that did not come back',
      cancelled,
      { reservation: { state: 'committed' }, shipment: { state: 'delivered' } },
      'orders and stock',
    ],
    [
      'fewer pieces than were ordered',
      completed,
      { reservation: { state: 'committed', lines: [{ productId: 'apple', quantity: 1 }] } },
      'orders and stock',
    ],
    [
      'points of another customer',
      completed,
      { award: { state: 'awarded', points: 2, customerId: 'ben' } },
      'orders and points',
    ],
    ['a shipment that is missing', completed, { shipment: null }, 'stock and shipments'],
    ['a shipment that did not come back', cancelled, { shipment: { state: 'delivered' } }, 'stock and shipments'],
    ['points that are missing', completed, { award: null }, 'orders and points'],
    ['points of another amount', completed, { award: { state: 'awarded', points: 3 } }, 'orders and points'],
    ['points that were not taken back', cancelled, { award: { state: 'awarded', points: 2 } }, 'orders and points'],
    [
      'a delivered order that is not completed',
      completed,
      { order: { ...(completed.order as object), status: 'PAID' } },
      'orders and shipments',
    ],
  ])('finds %s', (_name, facts, change, between) => {
    expect(found(facts, change).map((difference) => difference.between)).toEqual([between]);
  });

  it.each<[string, Partial<EventFacts>, string]>([
    ['is not published', { status: 'DEAD' }, 'is DEAD in the outbox'],
    ['was not settled', { groups: {} }, 'has not been settled by group shipping'],
    ['is a dead letter', { groups: { shipping: 'parked (dead)' } }, 'is parked (dead) in group shipping'],
  ])('names the event at which the story stopped when it %s', (_name, change, why) => {
    const [created, paid, committed] = completed.events as readonly EventFacts[];
    const events = [created, paid, { ...committed, ...change }];
    expect(found(completed, { shipment: null, events })).toMatchObject([
      { orderId: 'o1', brokeAt: { eventType: 'InventoryCommitted', why } },
    ]);
  });

  it.each<[string, Loose, Partial<Loose>, string | null]>([
    ['a payment that is missing', completed, { payments: [] }, 'OrderPaid'],
    ['a payment of another amount', completed, { payments: [{ ...payment, amountMinor: 1 }] }, 'OrderPaid'],
    ['a refund that is missing', cancelled, { refunds: [] }, 'OrderCancelled'],
    ['a refund of another amount', cancelled, { refunds: [{ ...refund, amountMinor: 1 }] }, 'OrderCancelled'],
    ['the refund of a surplus', completed, { payments: [payment, surplus] }, 'SurplusPaymentReceived'],
    ['a refund of which no event tells', completed, { refunds: [{ ...refund, _id: 't3' }] }, null],
  ])('names the event that tells of %s', (_name, facts, change, eventType) => {
    const events = [
      ...(facts.events as readonly EventFacts[]),
      event('order', 'SurplusPaymentReceived', { transactionId: 't2' }),
      ...(facts === cancelled ? [event('order', 'OrderCancelled')] : []),
    ];
    const brokeAt = eventType === null ? null : { eventType };
    expect(found(facts, { events, ...change })).toMatchObject([{ between: 'orders and payments', brokeAt }]);
  });

  it('says that an effect is wrong where every event was settled', () => {
    expect(found(completed, { award: null })).toMatchObject([{ brokeAt: null }]);
  });

  describe('of the warehouse', () => {
    const eventId = 'id of OrderPaid';
    const asWritten = { eventId, table: 'events', wanted: 'digest', found: ['digest'], isStaged: false };
    const foundLanded = (landed: object, outcome = 'applied', status: EventFacts['status'] = 'PUBLISHED') => {
      const events = [event('order', 'OrderPaid', { groups: { warehouse: outcome }, status })];
      const facts = { ...completed, events, landed: [{ ...asWritten, ...landed }] };
      return differencesOf(facts as unknown as OrderFacts, withWarehouse);
    };

    it.each<[string, object, string]>([
      ['once, as it was written', {}, 'applied'],
      ['in a table that has no row for it', { wanted: null, found: [] }, 'applied'],
      ['not, since an operator skipped it', { found: [] }, 'skipped'],
      ['otherwise, since an operator edited it', { found: ['other'] }, 'applied (edited)'],
      ['not, and nobody knows any more whether it was skipped', { found: [] }, 'past'],
      ['otherwise, and nobody knows any more whether it was edited', { found: ['other'] }, 'past'],
    ])('finds nothing at an event that is there %s', (_how, landed, outcome) => {
      expect(foundLanded(landed, outcome)).toEqual([]);
    });

    it.each<[string, object, string]>([
      ['is missing', { found: [] }, 'has OrderPaid id of OrderPaid 0 times in events, and should have it once'],
      [
        'is there twice',
        { found: ['digest', 'digest'] },
        'has OrderPaid id of OrderPaid 2 times in events, and should have it once',
      ],
      [
        'is there otherwise',
        { found: ['other'] },
        'has OrderPaid id of OrderPaid in events otherwise than it was written',
      ],
      [
        'should not be there',
        { wanted: null },
        'has OrderPaid id of OrderPaid 1 times in events, and should have it not at all',
      ],
    ])('finds an event that %s', (_how, landed, detail) => {
      expect(foundLanded(landed)).toEqual([{ orderId: 'o1', between: 'events and warehouse', detail, brokeAt: null }]);
    });

    it.each<[string, object, string, EventFacts['status']]>([
      ['is DEAD in the outbox', {}, 'applied', 'DEAD'],
      ['is parked (retry) in group warehouse', {}, 'parked (retry)', 'PUBLISHED'],
      ['is staged, and not landed yet', { isStaged: true }, 'applied', 'PUBLISHED'],
    ])('says of an event that is missing that it %s', (why, change, outcome, status) => {
      expect(foundLanded({ found: [], ...change }, outcome, status)).toMatchObject([{ brokeAt: { eventId, why } }]);
    });
  });

  describe('of what customers are told', () => {
    const eventId = 'id of OrderPaid';
    const sent = { _id: 'key', eventId, state: 'sent', recipient: 'c1' };
    const foundTold = (notifications: readonly object[], change: Partial<EventFacts> = {}) => {
      const events = [
        event('order', 'OrderPaid', { groups: { notification: 'applied' }, ...change }),
        // Nobody is told of these.
        event('order', 'OrderExported', { groups: {} }),
        event('reservation', 'InventoryCommitted', { groups: {} }),
      ];
      const order = { ...(completed.order as object), customerId: 'c1' };
      const award = { ...(completed.award as object), customerId: 'c1' };
      const facts = { ...completed, order, award, events, notifications };
      return differencesOf(facts as unknown as OrderFacts, { ...groups, notification: 'notification' });
    };

    it('finds nothing where he was told in every way of each event that he hears of', () => {
      expect(foundTold([sent, { ...sent, _id: 'other channel' }])).toEqual([]);
      expect(foundTold([], { groups: { notification: 'skipped' } })).toEqual([]);
      expect(foundTold([], { groups: { notification: 'past' } })).toEqual([]);
    });

    it.each<[string, readonly object[], string]>([
      ['of which nobody is told', [], 'of which nobody is told'],
      ['of another order', [{ ...sent, eventId: 'other' }], 'of which nobody is told'],
      [
        'of which somebody else is told',
        [{ ...sent, recipient: 'c2' }],
        'of which c2 is told by key, and the customer is c1',
      ],
      ['that is not sent', [sent, { ...sent, _id: 'k2', state: 'pending' }], 'whose notification k2 is not sent yet'],
      [
        'that cannot be sent',
        [{ ...sent, state: 'dead', lastFailure: { message: 'no such box' } }],
        'whose notification key is dead: no such box',
      ],
    ])('finds an event %s', (_what, notifications, problem) => {
      const detail = `has OrderPaid ${eventId}, ${problem}`;
      expect(foundTold(notifications)).toEqual([
        { orderId: 'o1', between: 'events and notifications', detail, brokeAt: null },
      ]);
    });

    it('names the event that its group has not settled', () => {
      const why = 'is parked (dead) in group notification';
      expect(foundTold([], { groups: { notification: 'parked (dead)' } })).toMatchObject([
        { brokeAt: { eventId, eventType: 'OrderPaid', why } },
      ]);
    });
  });

  it('finds sums that are not what they consist of', () => {
    const sums = [
      { of: 'a', kept: 1, addsUpTo: 1 },
      { of: 'b', kept: 1, addsUpTo: 2 },
    ];
    expect(sumDifferences('points and awards', sums)).toMatchObject([
      { detail: 'b is 1, and what it consists of adds up to 2' },
    ]);
  });
});
