import type { EventEnvelope, JsonValue } from '@nightporter/contracts';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { orderFact, partitionsOf, stagedEvent, type StagedEvent } from './facts.js';

function staged(eventType: string, data: JsonValue, change: Partial<EventEnvelope> = {}): StagedEvent {
  return stagedEvent({
    eventId: eventId(`id of ${eventType}`),
    source: 'orders',
    eventType,
    eventVersion: 1,
    aggregateType: 'order',
    aggregateId: 'o1',
    aggregateVersion: aggregateVersion(1),
    occurredAt: '2026-11-30T23:59:59.999Z',
    data,
    ...change,
  });
}

const money = { amountMinor: 9_007_199_254_740_991, currency: 'EUR', transactionId: 't1' };

describe('the facts of an order', () => {
  it.each<[string, JsonValue, Record<string, unknown>]>([
    [
      'OrderCreated',
      {
        customerId: 'c1',
        currency: 'EUR',
        totalMinor: 250,
        lines: [
          { productId: 'apple', quantity: 2, unitPriceMinor: 100 },
          { productId: 'pear', quantity: 1, unitPriceMinor: 50 },
        ],
      },
      { fact: 'created', customer_id: 'c1', currency: 'EUR', amount_minor: 250n, pieces: 3n },
    ],
    ['OrderPaid', money, { fact: 'paid', currency: 'EUR', amount_minor: 9_007_199_254_740_991n, transaction_id: 't1' }],
    [
      'SurplusPaymentReceived',
      { ...money, cause: 'cancelled' },
      { fact: 'surplus', amount_minor: 9_007_199_254_740_991n, transaction_id: 't1', reason: 'cancelled' },
    ],
    [
      'OrderCancelled',
      { reason: 'changed', wasPaid: true },
      { fact: 'cancelled', reason: 'changed', amount_minor: null },
    ],
    ['OrderCompleted', {}, { fact: 'completed', amount_minor: null }],
  ])('%s has its money in whole minor units', (eventType, data, expected) => {
    expect(orderFact(staged(eventType, data))).toMatchObject({ order_id: 'o1', order_version: 1n, ...expected });
  });

  it('are only those of orders', () => {
    expect(orderFact(staged('InventoryReserved', { orderId: 'o1', lines: [] }))).toBeNull();
  });
});

describe('partitions', () => {
  it('have every event once, by table and by the UTC day at which it occurred', () => {
    const next = { occurredAt: '2026-12-01T00:00:00.000Z' };
    const events = [
      staged('OrderCompleted', {}),
      staged('OrderCancelled', { reason: 'x', wasPaid: false }, next),
      staged('ShipmentDelivered', { orderId: 'o1' }, next),
    ];
    const shown = partitionsOf(events).map(({ table, day, rows }) => [table, day, rows.map((row) => row['event_id'])]);
    expect(shown).toEqual([
      ['events', '2026-11-30', ['id of OrderCompleted']],
      ['order_facts', '2026-11-30', ['id of OrderCompleted']],
      ['events', '2026-12-01', ['id of OrderCancelled', 'id of ShipmentDelivered']],
      ['order_facts', '2026-12-01', ['id of OrderCancelled']],
    ]);
  });

  it('keep the data of an event as its canonical text', () => {
    expect(staged('OrderCompleted', { b: 1, a: '😀' }).data).toBe('{"a":"😀","b":1}');
  });
});
