import { encodeEnvelope, type EventEnvelope } from '@nightporter/contracts';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { setAsideUnreadable, toldOfSetAside } from './group-changes.js';
import type { Delivery } from './ports.js';

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const envelope: EventEnvelope = {
  source: 'orders',
  aggregateType: 'order',
  aggregateId: '1',
  eventId: eventId('0190163d-8694-739b-aea5-966c26f8ad91'),
  eventType: 'OrderCreated',
  eventVersion: 1,
  aggregateVersion: aggregateVersion(3),
  occurredAt: '2026-01-01T00:00:00.000Z',
  data: {},
};

function told(body: Uint8Array, properties: Readonly<Record<string, string>> = {}) {
  const delivery: Delivery = { messageId: 'm', topic: 't', body, properties, deliveryAttempt: 1, receipt: null };
  return toldOfSetAside(setAsideUnreadable({ kind: 'unreadable', delivery, reason: 'of its form' }));
}

describe('what is told of a message that is set aside', () => {
  it('is the event that it says it is, where that can be read', () => {
    expect(told(encodeEnvelope({ ...envelope, traceparent }))).toMatchObject({
      kind: 'set-aside',
      id: 'm',
      messageId: 'm',
      topic: 't',
      envelope: { eventId: envelope.eventId, aggregateVersion: 3 },
      aggregate: 'orders/order/1',
      traceparent,
    });
  });

  it('is the trace of its send, where it is in none itself', () => {
    expect(told(encodeEnvelope(envelope), { traceparent })).toMatchObject({ traceparent });
    expect(told(encodeEnvelope(envelope))).toMatchObject({ traceparent: null });
  });

  it('is only the message, where nothing can be read', () => {
    expect(told(Buffer.from('{'), { traceparent })).toMatchObject({
      messageId: 'm',
      envelope: null,
      aggregate: null,
      traceparent,
    });
  });

  it('is no aggregate, where its identity cannot be written down', () => {
    const body = Buffer.from(JSON.stringify({ ...envelope, aggregateId: '\ud800' }));
    expect(told(body)).toMatchObject({ aggregate: null });
  });
});
