import { aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { decodeEnvelope, encodeEnvelope } from './codec.js';
import { digestOf } from './digest.js';
import type { EventEnvelope } from './envelope.js';

const envelope: EventEnvelope = {
  eventId: eventId('01890a5d-ac96-774b-bcce-b302099a8057'),
  source: 'orders',
  eventType: 'OrderCreated',
  eventVersion: 1,
  aggregateType: 'order',
  aggregateId: 'order/1 😀',
  aggregateVersion: aggregateVersion(7),
  occurredAt: '2026-01-02T03:04:05.006Z',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  correlationId: 'c',
  data: { lines: [{ price: 1 }], b: 1, a: 2 },
};

describe('the digest of an envelope', () => {
  it('is fixed for ever: stored digests depend on it', () => {
    expect(digestOf(envelope)).toBe('382dabb39b7dc48a44751a97aa25bfd9261fdccde5c61745bb5f63062856ded3');
  });

  it('does not depend on tracing headers, on the order of keys, or on the way through the codec', () => {
    const { traceparent, ...untraced } = envelope;
    expect(traceparent).toBeDefined();
    expect(digestOf(untraced)).toBe(digestOf(envelope));
    expect(digestOf({ ...envelope, tracestate: 'a=b' })).toBe(digestOf(envelope));
    expect(digestOf({ ...envelope, data: { a: 2, b: 1, lines: [{ price: 1 }] } })).toBe(digestOf(envelope));
    const decoded = decodeEnvelope(encodeEnvelope(envelope));
    expect(decoded.kind === 'envelope' && digestOf(decoded.envelope)).toBe(digestOf(envelope));
  });

  it.each(Object.keys(envelope).filter((name) => name !== 'traceparent'))('depends on %s', (name) => {
    const changed = { ...envelope, [name]: 'changed' } as unknown as EventEnvelope;
    expect(digestOf(changed)).not.toBe(digestOf(envelope));
  });

  it('counts a field that it does not know', () => {
    const later = { ...envelope, partition: 3 } as EventEnvelope;
    expect(digestOf(later)).not.toBe(digestOf(envelope));
  });

  it('takes a field that is undefined for one that is absent', () => {
    const sloppy = { ...envelope, causationId: undefined } as unknown as EventEnvelope;
    expect(digestOf(sloppy)).toBe(digestOf(envelope));
  });

  it('matches nothing where the body held a number that JSON cannot carry', () => {
    const body = new TextDecoder().decode(encodeEnvelope({ ...envelope, data: { price: null } }));
    const altered = decodeEnvelope(new TextEncoder().encode(body.replace('"price":null', '"price":1e400')));
    expect(altered.kind).toBe('envelope');
    expect(altered.kind === 'envelope' && digestOf(altered.envelope)).not.toBe(
      digestOf({ ...envelope, data: { price: null } }),
    );
  });
});
