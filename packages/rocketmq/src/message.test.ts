import { MESSAGE_PROPERTIES, decodeEnvelope, digestOf, envelopeOf, type OutboxRow } from '@nightporter/contracts';
import { aggregateVersion, epoch, eventId, namespace, slot } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { BODY_BYTES_MAX, MESSAGE_GROUP_BYTES_MAX, messageGroupOf, messageOf, type MessageVerdict } from './message.js';

function row(over: Partial<OutboxRow> = {}): OutboxRow {
  return {
    namespace: namespace('orders.outbox'),
    eventId: eventId('0190a000-0000-7000-8000-000000000001'),
    source: 'orders',
    aggregateType: 'order',
    aggregateId: 'o-1',
    aggregateVersion: aggregateVersion(3),
    eventType: 'OrderPaid',
    eventVersion: 2,
    topic: 'orders-events',
    eventKey: 'orders/order/o-1',
    payload: { amount: 12 },
    digest: 'digest at the write',
    headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
    slot: slot(5),
    status: 'PENDING',
    retryCount: 0,
    revision: 1,
    unanswered: false,
    occurredAt: '2026-01-02T03:04:05.678Z',
    dueInMs: 0,
    form: 'original',
    ...over,
  };
}

function verdictOf(over: Partial<OutboxRow>): MessageVerdict {
  return messageOf({ row: row(over), relay: 'relay', epoch: epoch(4) });
}

function built(over: Partial<OutboxRow> = {}) {
  const verdict = verdictOf(over);
  if (verdict.kind !== 'message') throw new Error(verdict.reason);
  return verdict.message;
}

describe('the message of a row', () => {
  it('carries the envelope, both keys, the tag, the group and the properties', () => {
    const message = built();
    expect(decodeEnvelope(message.body)).toEqual({ kind: 'envelope', envelope: envelopeOf(row(), 'original') });
    expect(message).toMatchObject({
      topic: 'orders-events',
      tag: 'OrderPaid',
      messageGroup: 'orders/order/o-1',
      keys: ['0190a000-0000-7000-8000-000000000001', 'orders/order/o-1'],
    });
    expect(Object.fromEntries(message.properties)).toEqual({
      [MESSAGE_PROPERTIES.form]: 'original',
      [MESSAGE_PROPERTIES.digest]: 'digest at the write',
      [MESSAGE_PROPERTIES.relayEpoch]: '4',
      [MESSAGE_PROPERTIES.source]: 'orders',
      [MESSAGE_PROPERTIES.eventVersion]: '2',
      [MESSAGE_PROPERTIES.traceparent]: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    });
  });

  it('tells when the event was written, where its row says so', () => {
    expect(built({ createdAtMs: 1_767_322_000_123 }).properties.get(MESSAGE_PROPERTIES.createdAt)).toBe(
      '1767322000123',
    );
  });

  it('has, as a tombstone, no data and the digest of what is sent', () => {
    const message = built({ form: 'tombstone' });
    expect(decodeEnvelope(message.body)).toMatchObject({ kind: 'envelope', envelope: { data: null } });
    expect(message.properties.get(MESSAGE_PROPERTIES.form)).toBe('tombstone');
    expect(message.properties.get(MESSAGE_PROPERTIES.digest)).toBe(digestOf(envelopeOf(row(), 'tombstone')));
  });

  it('names the send beside a body that keeps the trace of its writer', () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01';
    const verdict = messageOf({ row: row(), relay: 'relay-1', epoch: epoch(4), traceparent });
    if (verdict.kind !== 'message') throw new Error(verdict.reason);
    expect(verdict.message.properties.get(MESSAGE_PROPERTIES.traceparent)).toBe(traceparent);
    expect(verdict.message.body).toEqual(built().body);
  });

  it('is sent without a trace context that is malformed', () => {
    const message = built({ headers: { traceparent: 'not\u0007a trace' } });
    expect(message.properties.has(MESSAGE_PROPERTIES.traceparent)).toBe(false);
  });

  it.each(['a b', 'a/b:c', '🌙 night', 'x'.repeat(200), 'é'.repeat(200)])(
    'has one key without a space for the aggregate id %j',
    (aggregateId) => {
      const { keys } = built({ aggregateId });
      expect(keys[1]).toBe(`orders/order/${encodeURIComponent(aggregateId)}`);
      expect(keys[1]).not.toMatch(/\s/);
    },
  );

  it.each<[string, Partial<OutboxRow>, RegExp]>([
    ['a body over the limit', { payload: 'x'.repeat(BODY_BYTES_MAX) }, /bytes; accepted: up to 4194304/],
    ['a tag with a bar', { eventType: 'A|B' }, /eventType is "A\|B"/],
    ['a blank tag', { eventType: ' ' }, /eventType is " "/],
    ['an event id with a space', { eventId: eventId('a b') }, /key is "a b"/],
    ['a control character in a property', { source: 'or\u0001ders' }, /np-source/],
    [
      'properties over the limit',
      { aggregateId: 'é'.repeat(3_000) },
      /properties have \d+ bytes; accepted: up to 16384/,
    ],
    ['no topic at all', { topic: undefined as unknown as string }, /topic is undefined; accepted: a text/],
    ['no type at all', { eventType: undefined as unknown as string }, /cannot be encoded/],
    ['a lone surrogate in the id', { aggregateId: '\ud800' }, /cannot be encoded/],
  ])('is refused for %s, with the limit', (_what, over, reason) => {
    const verdict = verdictOf(over);
    expect(verdict).toMatchObject({ kind: 'illegal-message', reason: expect.stringMatching(reason) as string });
  });

  it.each(['', 'orders events', 'x'.repeat(128), 'é'])('is refused for the topic name %j', (topic) => {
    expect(verdictOf({ topic })).toMatchObject({ kind: 'illegal-topic' });
  });
});

describe('the message group of an event key', () => {
  it.each(['orders/order/o-1', '🌙 night', 'x'.repeat(MESSAGE_GROUP_BYTES_MAX)])('is the key %j itself', (key) => {
    expect(messageGroupOf(key)).toBe(key);
  });

  it.each(['x'.repeat(MESSAGE_GROUP_BYTES_MAX + 1), 'é'.repeat(32), 'a\nb', ' '])(
    'is a hash that fits where the broker would refuse the key %j',
    (key) => {
      const group = messageGroupOf(key);
      expect(group).toMatch(/^sha256:[A-Za-z0-9_-]{43}$/);
      expect(messageGroupOf(key)).toBe(group);
      expect(messageGroupOf(`${key}2`)).not.toBe(group);
    },
  );
});
