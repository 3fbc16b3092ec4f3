import type { ConsumerTracer, IncomingEvent, TransactionTrace } from '@nightporter/consumer';
import { NightporterError, aggregateKey, aggregateVersion, eventId } from '@nightporter/protocol';
import type { ActiveSpan, SpanAttributes, SpanStart, Tracing } from '@nightporter/runtime';
import { beforeEach, describe, expect, it } from 'vitest';
import { createConsumerTracer } from './tracer.js';

const WRITTEN = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const SENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01';

/** A span as it was told, with everything that was said of it. */
interface Told extends SpanStart {
  readonly said: Record<string, unknown>;
  readonly linked: (string | undefined)[];
  readonly happened: string[];
  error: string | null;
  ended: number;
}

let spans: Told[];
let tracer: ConsumerTracer;
let observe: ReturnType<typeof createConsumerTracer>['observe'];

const tracing: Tracing = {
  counts: () => ({ exported: 0, dropped: 0, failed: 0 }),
  start: (start): ActiveSpan => {
    const told: Told = {
      ...start,
      said: { ...start.attributes },
      linked: (start.links ?? []).map(({ traceparent }) => traceparent),
      happened: [],
      error: null,
      ended: 0,
    };
    spans.push(told);
    return {
      context: { traceparent: `span ${spans.length}` },
      set: (attributes: SpanAttributes) => Object.assign(told.said, attributes),
      link: ({ traceparent }) => told.linked.push(traceparent),
      event: (name) => told.happened.push(name),
      fail: (type) => (told.error = type),
      run: (work) => work(),
      end: () => (told.ended += 1),
    };
  },
};

beforeEach(() => {
  spans = [];
  ({ tracer, observe } = createConsumerTracer(tracing, 'inventory'));
});

function event(version: number, sentIn?: string): IncomingEvent {
  const identity = { source: 'orders', aggregateType: 'order', aggregateId: '1' };
  return {
    envelope: {
      ...identity,
      eventId: eventId(`0190163d-8694-739b-aea5-966c26f8ad9${version}`),
      eventType: 'OrderCreated',
      eventVersion: 1,
      aggregateVersion: aggregateVersion(version),
      occurredAt: '2026-01-01T00:00:00.000Z',
      traceparent: WRITTEN,
      correlationId: 'story',
      data: { secret: 'payload' },
    },
    aggregate: aggregateKey(identity),
    topic: 'orders-events',
    form: 'original',
    digest: 'd',
    messageId: `m${version}`,
    ...(sentIn === undefined ? {} : { sentIn }),
  };
}

const run = (transaction: TransactionTrace, version: number, handler = () => Promise.resolve()) =>
  transaction.handling({ event: event(version, SENT), attempt: 1 }).run(handler);
const conflict = new NightporterError('NP_TRANSACTION_CONFLICT', 'Another was faster.');
const away = new NightporterError('NP_STORE_UNAVAILABLE', 'No answer.');

describe('the span of a handler', () => {
  it('stands below the send that brought its event, linked to what wrote it, and tells of the event without its data', async () => {
    const transaction = tracer.transaction(1);
    await run(transaction, 1);
    expect(spans[0]).toMatchObject({ name: 'process orders-events', kind: 'consumer', ended: 0 });
    transaction.ended({ kind: 'committed' });
    const [span] = spans;
    expect(spans).toHaveLength(1);
    expect(span).toMatchObject({ parent: { traceparent: SENT }, linked: [WRITTEN], error: null, ended: 1 });
    expect(span!.happened).toEqual(['handler returned']);
    expect(span!.said).toMatchObject({
      'messaging.operation.type': 'process',
      'messaging.destination.name': 'orders-events',
      'messaging.consumer.group.name': 'inventory',
      'messaging.message.id': 'm1',
      'nightporter.event.id': event(1).envelope.eventId,
      'nightporter.aggregate': event(1).aggregate,
      'nightporter.aggregate.version': 1,
      'nightporter.attempt': 1,
      'nightporter.outcome': 'applied',
    });
    expect(JSON.stringify(span!.said)).not.toContain('payload');
  });

  it('stands below what wrote its event where no traced send has brought it', () => {
    tracer.transaction(1).handling({ event: event(1), attempt: 3 });
    expect(spans[0]).toMatchObject({
      parent: { traceparent: WRITTEN },
      linked: [],
      said: { 'nightporter.attempt': 3 },
    });
  });

  it('is what the emitted events name as their trace', () => {
    expect(tracer.transaction(1).handling({ event: event(1), attempt: 1 }).context).toEqual({ traceparent: 'span 1' });
  });

  it.each([
    [conflict, 'rolled-back', 'NP_TRANSACTION_CONFLICT'],
    [away, 'unknown', 'NP_STORE_UNAVAILABLE'],
  ])('does not claim the effect where its transaction ends with %s', async (error, outcome, type) => {
    const transaction = tracer.transaction(1);
    await run(transaction, 1);
    transaction.ended({ kind: 'failed', error });
    expect(spans[0]).toMatchObject({ error: type, ended: 1, said: { 'nightporter.outcome': outcome } });
  });

  it('is no failure of its handler where that met a conflict, or a database that is away', async () => {
    for (const error of [conflict, away]) {
      const transaction = tracer.transaction(1);
      await expect(run(transaction, 1, () => Promise.reject(new Error('of the driver')))).rejects.toThrow();
      transaction.ended({ kind: 'failed', error });
    }
    const ends = spans.map(({ error, said }) => [error, said['nightporter.outcome']]);
    expect(ends).toEqual([
      ['NP_TRANSACTION_CONFLICT', 'rolled-back'],
      ['NP_STORE_UNAVAILABLE', 'rolled-back'],
    ]);
  });

  it('names the class of what its handler threw, never the message, and passes it on', async () => {
    const transaction = tracer.transaction(2);
    await run(transaction, 1);
    const thrown = new RangeError('customer 4711 has no limit');
    await expect(run(transaction, 2, () => Promise.reject(thrown))).rejects.toBe(thrown);
    transaction.ended({ kind: 'failed', error: thrown });
    const outcomes = spans.slice(1).map(({ said, error }) => [said['nightporter.outcome'], error]);
    expect(outcomes).toEqual([
      ['rolled-back', 'RangeError'],
      ['failed', 'RangeError'],
    ]);
    expect(JSON.stringify(spans)).not.toContain('4711');
  });
});

describe('the span of a transaction of several messages', () => {
  it('and the runs in it link to each other', async () => {
    const transaction = tracer.transaction(3);
    await run(transaction, 1);
    await run(transaction, 2);
    transaction.ended({ kind: 'committed' });
    const [together, ...runs] = spans;
    expect(together).toMatchObject({ name: 'commit inventory', linked: ['span 2', 'span 3'], ended: 1, error: null });
    expect(together!.said['messaging.batch.message_count']).toBe(3);
    expect(together!.parent).toBeUndefined();
    expect(runs.map(({ linked }) => linked)).toEqual([
      [WRITTEN, 'span 1'],
      [WRITTEN, 'span 1'],
    ]);
  });

  it('is not there where no handler ran', () => {
    tracer.transaction(3).ended({ kind: 'committed' });
    expect(spans).toEqual([]);
  });
});

describe('what is decided without a handler', () => {
  it('is a moment: a duplicate is discarded, and claims no effect', () => {
    observe({ kind: 'duplicate', event: event(1, SENT) });
    expect(spans[0]).toMatchObject({
      name: 'discard orders-events',
      parent: { traceparent: SENT },
      ended: 1,
      error: null,
      said: { 'nightporter.outcome': 'duplicate' },
    });
  });

  it.each([
    ['gap', null],
    ['behind', null],
    ['retry', null],
    ['dead', 'NP_HANDLER_FAILED'],
  ] as const)('tells what is parked: %s', (state, error) => {
    const failure = { code: 'NP_HANDLER_FAILED', message: 'secret', stack: null };
    observe({ kind: 'parked', event: event(1), state, failure });
    expect(spans[0]).toMatchObject({ name: 'park orders-events', error, said: { 'nightporter.outcome': state } });
  });

  it('tells of a skip, and not of what its handler or nobody has seen', () => {
    for (const outcome of ['applied', 'ignored', 'skipped'] as const)
      observe({ kind: 'settled', event: event(1), outcome, attempt: 1 });
    observe({ kind: 'conflict' });
    expect(spans.map(({ name }) => name)).toEqual(['skip orders-events']);
  });
});
