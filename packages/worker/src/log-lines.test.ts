import type { HandlerContext, IncomingEvent } from '@nightporter/consumer';
import { ordersCatalogue } from '@nightporter/contracts';
import { aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import { createLogger, systemClock } from '@nightporter/runtime';
import type { ClientSession } from 'mongodb';
import { beforeEach, describe, expect, it } from 'vitest';
import { engineHandlers } from './handlers.js';
import { createConsumerObserver } from './observer.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const identity = { source: 'orders', aggregateType: 'order', aggregateId: '1' };
const event: IncomingEvent = {
  envelope: {
    ...identity,
    eventId: eventId('0190163d-8694-739b-aea5-966c26f8ad91'),
    eventType: 'OrderCreated',
    eventVersion: 1,
    aggregateVersion: aggregateVersion(3),
    occurredAt: '2026-01-01T00:00:00.000Z',
    traceparent: `00-${TRACE}-00f067aa0ba902b7-01`,
    correlationId: 'story',
    data: { customerId: 'payload' },
  },
  aggregate: aggregateKey(identity),
  topic: 'orders-events',
  form: 'original',
  digest: 'd',
  messageId: 'm',
};
const place = {
  service: 'sample',
  group: 'inventory',
  eventId: event.envelope.eventId,
  aggregate: event.aggregate,
  aggregateVersion: 3,
  traceId: TRACE,
};

const nobody: unknown = {};

let lines: string[];
const logger = createLogger({
  name: 'sample',
  level: 'debug',
  destination: { write: (line) => lines.push(line) },
}).child({ group: 'inventory' });

beforeEach(() => {
  lines = [];
});

describe('a line about an event', () => {
  it('names service, group, event, aggregate, version and trace, and holds no payload', () => {
    const { observe } = createConsumerObserver(logger, systemClock);
    observe({ kind: 'settled', event, outcome: 'applied', attempt: 1 });
    observe({ kind: 'duplicate', event });
    observe({ kind: 'parked', event, state: 'gap', failure: null });
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ ...place, msg: 'settled' }),
      expect.objectContaining({ ...place, msg: 'duplicate' }),
      expect.objectContaining({ ...place, msg: 'parked', level: 'info' }),
    ]);
    expect(lines.join('')).not.toContain('payload');
  });

  it('names them too where a handler writes it', async () => {
    const handlers = engineHandlers(
      {
        OrderCreated: ({ logger: own }) => {
          own.info('reserving');
          return Promise.resolve();
        },
      },
      { catalogue: ordersCatalogue, topics: ['orders-events'], logger },
    );
    await handlers['OrderCreated']?.({
      event: event.envelope,
      session: nobody as ClientSession,
      emit: () => Promise.resolve(),
      signal: new AbortController().signal,
      attempt: 2,
    } satisfies HandlerContext<ClientSession>);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      expect.objectContaining({ ...place, msg: 'reserving', attempt: 2, correlationId: 'story' }),
    ]);
    expect(lines.join('')).not.toContain('payload');
  });
});
