import type { IncomingEvent } from '@nightporter/consumer';
import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { parkedEvent, storedEvent } from './parked-documents.js';

const identity = { source: 'orders', aggregateType: 'order', aggregateId: '1' };
const event: IncomingEvent = {
  envelope: {
    ...identity,
    eventId: eventId('0190163d-8694-739b-aea5-966c26f8ad91'),
    eventType: 'OrderCreated',
    eventVersion: 1,
    aggregateVersion: aggregateVersion(1),
    occurredAt: '2026-01-01T00:00:00.000Z',
    data: {},
  },
  aggregate: aggregateKey(identity),
  topic: 'orders-events',
  form: 'original',
  digest: 'd',
  messageId: 'm',
};

const parked = (of: IncomingEvent) =>
  parkedEvent({ aggregate: of.aggregate, event: storedEvent(of), state: 'retry', attempts: 1, revision: 1 }).event;

describe('a parked event', () => {
  it.each([
    ['with everything that came along', { createdAtMs: 1_767_322_000_123, sentIn: 'a trace' }],
    ['without what did not', {}],
  ])('is read back as it was, %s', (_what, more) => {
    expect(parked({ ...event, ...more })).toEqual({ ...event, ...more });
  });
});
