import type { IncomingEvent } from '@nightporter/consumer';
import { digestOf } from '@nightporter/contracts';
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

const row = { aggregate: event.aggregate, version: 1, state: 'retry', attempts: 1, revision: 1 } as const;
const parked = (of: IncomingEvent) => parkedEvent({ ...row, event: storedEvent(of) }).event;

describe('a parked event', () => {
  it.each([
    ['with everything that came along', { createdAtMs: 1_767_322_000_123, sentIn: 'a trace' }],
    ['without what did not', {}],
  ])('is read back as it was, %s', (_what, more) => {
    expect(parked({ ...event, ...more })).toEqual({ ...event, ...more });
  });

  const stored = storedEvent(event);
  it.each([
    ['no JSON', '{"eventId":'],
    ['JSON of another shape', '[]'],
    ['an aggregate that has no key', stored.envelope.replace('"aggregateId":"1"', '"aggregateId":"\\ud800"')],
    ['nothing', undefined],
    ['null', null],
    ['a number', 7],
    ['another event', stored.envelope.replace('0190163d', '0190163e')],
    ['another version', stored.envelope.replace('"aggregateVersion":1', '"aggregateVersion":2')],
    ['another aggregate', stored.envelope.replace('"aggregateId":"1"', '"aggregateId":"2"')],
  ])('keeps its place, and cannot pass for what was written, where its envelope was changed into %s', (_what, text) => {
    expect(text).not.toBe(stored.envelope);
    const damaged = { ...stored, digest: digestOf(event.envelope), envelope: text as string };
    const found = parkedEvent({ ...row, event: damaged }).event;
    const { eventId: id, aggregateVersion: version } = found.envelope;
    expect([id, version, aggregateKey(found.envelope)]).toEqual([event.envelope.eventId, 1, event.aggregate]);
    expect(digestOf(found.envelope)).not.toBe(found.digest);
    // Nor once it was parked again.
    const again = parkedEvent({ ...row, event: storedEvent(found) }).event;
    expect(again.damagedText).toBe(found.damagedText);
    expect(digestOf(again.envelope)).not.toBe(again.digest);
  });

  it('is read as it was where a tool has put an object in place of its text', () => {
    const found = parkedEvent({ ...row, event: { ...stored, envelope: event.envelope as unknown as string } }).event;
    expect(found).toEqual(event);
  });
});
