import type { OutboxRow } from '@nightporter/contracts';
import { epoch } from '@nightporter/protocol';
import { PublishError, type Publisher, type PublishRequest } from '@nightporter/relay';
import type { ActiveSpan, SpanStart, Tracing } from '@nightporter/runtime';
import { describe, expect, it } from 'vitest';
import { tracedPublisher } from './traced-publisher.js';

const row = {
  eventId: '0190163d-8694-739b-aea5-966c26f8ad91',
  source: 'orders',
  eventType: 'OrderCreated',
  eventVersion: 1,
  aggregateType: 'order',
  aggregateId: '1',
  aggregateVersion: 3,
  eventKey: 'order/1',
  topic: 'orders-events',
  form: 'original',
  headers: { traceparent: 'written', correlationId: 'story' },
  payload: { secret: 'payload' },
} as unknown as OutboxRow;
const request: PublishRequest = { row, relay: 'r', epoch: epoch(7) };

function traced(publisher: Publisher) {
  const started: SpanStart[] = [];
  const said: unknown[] = [];
  const tracing: Tracing = {
    counts: () => ({ exported: 0, dropped: 0, failed: 0 }),
    start: (span): ActiveSpan => {
      started.push(span);
      return {
        context: { traceparent: 'sent' },
        set: (attributes) => said.push(attributes),
        link: () => undefined,
        event: () => undefined,
        fail: (type) => said.push(type),
        run: (work) => work(),
        end: () => said.push('end'),
      };
    },
  };
  return {
    started,
    said,
    publisher: tracedPublisher(publisher, { tracing, endpoints: 'broker-a:8081;broker-b:8081' }),
  };
}

describe('a traced publisher', () => {
  it('has a span for each send, below what wrote the event, and the message names it', async () => {
    const requests: PublishRequest[] = [];
    const { publisher, started, said } = traced({
      publish: (sent) => {
        requests.push(sent);
        return Promise.resolve({ messageId: 'm1' });
      },
    });
    expect(await publisher.publish(request)).toEqual({ messageId: 'm1' });
    expect(requests).toEqual([{ ...request, traceparent: 'sent' }]);
    expect(started).toHaveLength(1);
    expect(started[0]).toMatchObject({
      name: 'send orders-events',
      kind: 'producer',
      parent: { traceparent: 'written' },
      attributes: {
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'orders-events',
        'messaging.rocketmq.message.group': 'order/1',
        'nightporter.event.id': row.eventId,
        'nightporter.aggregate.version': 3,
        'nightporter.relay.epoch': 7,
        'server.address': 'broker-a',
        'server.port': 8081,
      },
    });
    expect(JSON.stringify(started[0])).not.toContain('payload');
    expect(said).toEqual([{ 'messaging.message.id': 'm1' }, 'end']);
  });

  it('leaves it to the publisher to say what ails a document that lacks everything', async () => {
    const foreign: PublishRequest = { ...request, row: { topic: 'orders-events' } as unknown as OutboxRow };
    const requests: PublishRequest[] = [];
    const { publisher, started } = traced({
      publish: (sent) => {
        requests.push(sent);
        return Promise.resolve({ messageId: 'm1' });
      },
    });
    await publisher.publish(foreign);
    expect([requests, started]).toEqual([[foreign], []]);
  });

  it('names what kind of failure it was, and passes the failure on', async () => {
    const failure = new PublishError({ failure: 'transient', answered: false, message: 'secret' });
    const { publisher, said } = traced({ publish: () => Promise.reject(failure) });
    await expect(publisher.publish(request)).rejects.toBe(failure);
    expect(said).toEqual(['NP_PUBLISH_FAILED', 'end']);
  });
});
