import { MESSAGE_PROPERTIES, digestOf, encodeEnvelope, type EventEnvelope } from '@nightporter/contracts';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { workOf, type Reader } from './incoming.js';
import type { Delivery } from './ports.js';

const envelope: EventEnvelope = {
  eventId: eventId('e1'),
  source: 'orders',
  eventType: 'OrderPaid',
  eventVersion: 1,
  aggregateType: 'order',
  aggregateId: 'a b/ü',
  aggregateVersion: aggregateVersion(7),
  occurredAt: '2026-01-02T03:04:05.678Z',
  data: { amountMinor: 5 },
};

const reader: Reader<unknown> = {
  handlers: { OrderPaid: () => Promise.resolve() },
  read: (read) => ({ kind: 'event', envelope: read }),
};

function delivery(more: Partial<Delivery> = {}, of: EventEnvelope = envelope): Delivery {
  return {
    messageId: 'm1',
    topic: 'order-events',
    body: encodeEnvelope(of),
    properties: { [MESSAGE_PROPERTIES.form]: 'original', [MESSAGE_PROPERTIES.digest]: digestOf(of) },
    deliveryAttempt: 1,
    receipt: null,
    ...more,
  };
}

const contentOf = (from: Delivery, by: Reader<unknown> = reader): unknown => {
  const work = workOf(from, by, 2);
  return work.kind === 'event' ? work.content : work;
};

describe('a delivery', () => {
  const traced = { ...envelope, traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
  const sent = '00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01';

  test.each([
    ['the send that brought it', sent, sent],
    ['no send where that is not traced', traced.traceparent, undefined],
    ['no send that is malformed', 'nonsense', undefined],
  ])('names %s', (_what, traceparent, sentIn) => {
    const { properties } = delivery({}, traced);
    const named = delivery({ properties: { ...properties, [MESSAGE_PROPERTIES.traceparent]: traceparent } }, traced);
    const work = workOf(named, reader, 2);
    if (work.kind !== 'event') throw new Error(work.reason);
    expect([work.event.sentIn, work.event.envelope.traceparent]).toEqual([sentIn, traced.traceparent]);
  });

  test('is the event that was written, ready for its handler', () => {
    expect(workOf(delivery(), reader, 2)).toEqual({
      kind: 'event',
      event: {
        envelope,
        aggregate: 'orders/order/a%20b%2F%C3%BC',
        topic: 'order-events',
        form: 'original',
        digest: digestOf(envelope),
        messageId: 'm1',
      },
      content: { kind: 'event' },
      readable: envelope,
      claim: null,
      isSuspect: false,
      isFromLedger: false,
    });
  });

  test('gives its handler the event as the catalogue reads it', () => {
    const upcast = { ...envelope, eventVersion: 2 };
    const work = workOf(delivery(), { ...reader, read: () => ({ kind: 'event', envelope: upcast }) }, 2);
    expect(work).toMatchObject({ event: { envelope }, readable: upcast });
  });

  test('is suspect once it has been delivered more often than is trusted', () => {
    expect(workOf(delivery({ deliveryAttempt: 2 }), reader, 2)).toMatchObject({ isSuspect: false });
    expect(workOf(delivery({ deliveryAttempt: 3 }), reader, 2)).toMatchObject({ isSuspect: true });
  });

  test.each([
    ['that is not JSON', { body: new TextEncoder().encode('{') }],
    ['with an unknown form', { properties: { [MESSAGE_PROPERTIES.form]: 'copy' } }],
    [
      'whose aggregate cannot be encoded',
      { body: new TextEncoder().encode(JSON.stringify({ ...envelope, aggregateId: '\ud800' })) },
    ],
  ])('%s is unreadable', (_name, more) => {
    expect(workOf(delivery(more), reader, 2).kind).toBe('unreadable');
  });
});

describe('the content of an event', () => {
  test.each([
    ['1767322000123', 1_767_322_000_123],
    ['', undefined],
    ['-5', undefined],
    ['1e9', undefined],
    ['99999999999999999999', undefined],
  ])('tells when it was written by the property %j: %s', (text, createdAtMs) => {
    const { properties } = delivery();
    const work = workOf(delivery({ properties: { ...properties, [MESSAGE_PROPERTIES.createdAt]: text } }), reader, 2);
    expect(work).toMatchObject({ kind: 'event', content: { kind: 'event' } });
    expect(work.kind === 'event' ? work.event.createdAtMs : null).toBe(createdAtMs);
  });

  test('is a defect where the digest differs, or none came', () => {
    const altered = encodeEnvelope({ ...envelope, data: { amountMinor: 6 } });
    expect(contentOf(delivery({ body: altered }))).toMatchObject({ kind: 'defect', code: 'NP_DIGEST_MISMATCH' });
    const bare = delivery({ properties: {} });
    expect(contentOf(bare)).toMatchObject({ kind: 'defect', reason: expect.stringContaining('no digest') });
  });

  test('does not depend on the tracing headers', () => {
    const traced = { ...envelope, traceparent: '00-1-2-01' };
    expect(contentOf(delivery({ body: encodeEnvelope(traced) }))).toEqual({ kind: 'event' });
  });

  test('of a tombstone is checked by its digest, and read by nobody', () => {
    const empty = { ...envelope, data: null };
    const tombstone = { [MESSAGE_PROPERTIES.form]: 'tombstone', [MESSAGE_PROPERTIES.digest]: digestOf(empty) };
    const never: Reader<unknown> = {
      ...reader,
      read: () => {
        throw new Error('read');
      },
    };
    expect(contentOf(delivery({ properties: tombstone }, empty), never)).toEqual({ kind: 'tombstone' });
    expect(contentOf(delivery({ properties: tombstone }))).toMatchObject({ kind: 'defect' });
  });

  test('of a type without handler is not read, also where the type is the name of something inherited', () => {
    const inherited = { ...envelope, eventType: 'constructor' };
    const strict: Reader<unknown> = { ...reader, read: () => ({ kind: 'invalid', reason: 'unknown' }) };
    expect(contentOf(delivery({}, inherited), strict)).toEqual({ kind: 'unhandled' });
  });

  test('that the catalogue refuses, or fails over, is a defect', () => {
    const by = (read: Reader<unknown>['read']): unknown => contentOf(delivery(), { ...reader, read });
    expect(by(() => ({ kind: 'unsupported', reason: 'v9' }))).toMatchObject({ code: 'NP_EVENT_VERSION_UNSUPPORTED' });
    expect(by(() => ({ kind: 'invalid', reason: 'no' }))).toMatchObject({ code: 'NP_EVENT_INVALID', reason: 'no' });
    expect(
      by(() => {
        throw new Error('bug');
      }),
    ).toMatchObject({ code: 'NP_EVENT_INVALID', reason: expect.stringContaining('bug') });
  });
});
