import { describe, expect, it } from 'vitest';
import { idempotencyKey, noticeOf, type ToldEvent } from './notice.js';

const envelope = {
  eventId: '019a0000-0000-7000-8000-000000000001',
  source: 'orders',
  eventVersion: 1,
  aggregateType: 'order',
  aggregateId: 'o 1',
  aggregateVersion: 1,
  occurredAt: '2026-01-02T03:04:05.006Z',
};
const event = (eventType: keyof ToldEvent, data: object) =>
  ({ ...envelope, eventType, data }) as unknown as ToldEvent[keyof ToldEvent];

describe('a notice', () => {
  it.each([
    [
      'OrderCreated',
      { customerId: 'c', currency: 'EUR', lines: [], totalMinor: 250 },
      'We have your order o 1',
      /EUR 250/,
    ],
    ['OrderPaid', { transactionId: 't', amountMinor: 250, currency: 'EUR' }, 'Your order o 1 is paid', /EUR 250/],
    [
      'OrderCancelled',
      { reason: 'out of stock', wasPaid: true },
      'Your order o 1 is cancelled',
      /stock\. You get back/,
    ],
    ['OrderCancelled', { reason: 'no need', wasPaid: false }, 'Your order o 1 is cancelled', /need\.$/],
    ['OrderCompleted', {}, 'Your order o 1 has been delivered', /like/],
    [
      'SurplusPaymentReceived',
      { transactionId: 't', amountMinor: 9, currency: 'EUR', cause: 'cancelled' },
      'A payment for your order o 1',
      /EUR 9 .*get it back/,
    ],
  ] as const)('of %s says what has happened, and only what the event says', (type, data, subject, text) => {
    const { aggregateId: orderId, eventId, occurredAt } = envelope;
    const told = event(type, data);
    expect(noticeOf(told, 'c')).toEqual({
      recipient: 'c',
      orderId,
      eventId,
      eventType: type,
      occurredAt,
      subject,
      text: expect.stringMatching(text) as string,
    });
    expect(noticeOf(told, 'c')).toEqual(noticeOf(structuredClone(told), 'c'));
  });
});

describe('an idempotency key', () => {
  const part = { eventId: envelope.eventId, channel: 'webhook', recipient: 'Jörg 🦉\r\nX: y' } as const;

  it('is the same for the same event, channel and recipient, and another for any other', () => {
    const keys = [
      part,
      { ...part },
      { ...part, channel: 'smtp' as const },
      { ...part, recipient: 'c2' },
      { ...part, eventId: 'other' },
    ].map(idempotencyKey);
    expect(keys[0]).toBe(keys[1]);
    expect(new Set(keys).size).toBe(4);
  });

  it('can stand in a header, whatever the recipient is called', () => {
    expect(idempotencyKey(part)).toMatch(/^[0-9a-z-]{20,100}$/);
  });
});
