import type { EventEnvelope } from '@nightporter/contracts';
import { aggregateVersion, eventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { headersCausedBy } from './emitter.js';

const cause: EventEnvelope = {
  eventId: eventId('cause'),
  source: 's',
  eventType: 'T',
  eventVersion: 1,
  aggregateType: 't',
  aggregateId: '1',
  aggregateVersion: aggregateVersion(1),
  occurredAt: '2026-01-02T03:04:05.006Z',
  data: null,
};

describe('the headers of an event that a handler emits', () => {
  it('carry story, tenant and trace of the cause, and name it', () => {
    const headers = { traceparent: 'p', tracestate: 's', tenantId: 't', correlationId: 'story' };
    expect(headersCausedBy({ ...cause, ...headers, causationId: 'before' })).toStrictEqual({
      ...headers,
      causationId: 'cause',
    });
  });

  it('name the story after a cause that has none', () => {
    expect(headersCausedBy(cause)).toStrictEqual({ correlationId: 'cause', causationId: 'cause' });
  });
});
