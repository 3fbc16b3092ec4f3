import { aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { envelopeOf } from './envelope-of.js';
import type { EventHeaders } from './envelope.js';

const row = {
  eventId: eventId('e1'),
  source: 'orders',
  eventType: 'OrderPaid',
  eventVersion: 2,
  aggregateType: 'order',
  aggregateId: '1',
  aggregateVersion: aggregateVersion(3),
  occurredAt: '2026-01-02T03:04:05.006Z',
  headers: { correlationId: 'c', tenantId: 't' },
  payload: { a: 1 },
};

describe('the envelope of an outbox row', () => {
  it('holds the identity, the headers and the payload as data', () => {
    expect(envelopeOf(row, 'original')).toStrictEqual({
      eventId: 'e1',
      source: 'orders',
      eventType: 'OrderPaid',
      eventVersion: 2,
      aggregateType: 'order',
      aggregateId: '1',
      aggregateVersion: 3,
      occurredAt: '2026-01-02T03:04:05.006Z',
      tenantId: 't',
      correlationId: 'c',
      data: { a: 1 },
    });
  });

  it('is the same from the stored document, with its _id and its Date', () => {
    const { eventId: _id, occurredAt, ...rest } = row;
    expect(envelopeOf({ ...rest, _id, occurredAt: new Date(occurredAt) }, 'original')).toStrictEqual(
      envelopeOf(row, 'original'),
    );
  });

  it('has no data as a tombstone, and keeps identity and version', () => {
    expect(envelopeOf(row, 'tombstone')).toStrictEqual({ ...envelopeOf(row, 'original'), data: null });
  });

  it('leaves out headers that were read back as null', () => {
    const headers = { correlationId: 'c', traceparent: null } as unknown as EventHeaders;
    expect(envelopeOf({ ...row, headers }, 'original')).not.toHaveProperty('traceparent');
  });
});
