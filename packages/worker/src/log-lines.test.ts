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

  it('names them as far as they are known where a message is set aside', () => {
    const { observe } = createConsumerObserver(logger, systemClock);
    const { aggregate, envelope, topic } = event;
    const failure = { code: 'NP_VERSION_CONFLICT', message: 'another event has this version', stack: null };
    const known = { kind: 'set-aside', id: envelope.eventId, failure, messageId: 'm', topic } as const;
    observe({ ...known, envelope, aggregate, traceparent: envelope.traceparent ?? null });
    observe({ ...known, id: 'm', envelope: null, aggregate: null, traceparent: `00-${TRACE}-00f067aa0ba902b7-01` });
    observe({ ...known, id: 'm', envelope: null, aggregate: null, traceparent: null });
    const [named, traced, nameless] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const { service, group } = place;
    expect(named).toMatchObject({ ...place, level: 'error', id: envelope.eventId, messageId: 'm', topic, failure });
    expect(traced).toMatchObject({ service, group, traceId: TRACE, id: 'm', messageId: 'm', topic });
    expect(nameless).toMatchObject({ service, group, id: 'm', messageId: 'm', topic });
    for (const missing of ['eventId', 'eventType', 'aggregate', 'aggregateVersion', 'traceId'])
      expect(nameless).not.toHaveProperty(missing);
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
