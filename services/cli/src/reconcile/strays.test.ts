import { describe, expect, it } from 'vitest';
import type { EventFacts } from './facts.js';
import { strayDifference } from './strays.js';

const stray = { orderId: 'o1', kind: 'reservations', what: 'its reservation is released', eventId: 'e2' };
const event = (eventId: string, eventType: string): EventFacts => ({
  eventId,
  eventType,
  aggregateType: 'order',
  version: 1,
  status: 'PUBLISHED',
  transactionId: null,
  groups: {},
});

describe('What names an order that is not there', () => {
  it.each<[string, readonly EventFacts[], object | null]>([
    ['the event that created the order', [event('e1', 'OrderCreated'), event('e2', 'OrderPaid')], { eventId: 'e1' }],
    ['what led to it, where none created the order', [event('e2', 'OrderPaid')], { eventId: 'e2' }],
    ['no event, where none tells of it', [event('e3', 'OrderPaid')], null],
  ])('is a difference that names %s', (_name, events, brokeAt) => {
    expect(strayDifference(stray, events)).toMatchObject({
      orderId: 'o1',
      between: 'orders and reservations',
      detail: 'is not there, and its reservation is released',
      brokeAt,
    });
  });
});
