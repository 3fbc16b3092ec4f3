import {
  decodeEnvelope,
  defaultEventKey,
  digestOf,
  envelopeOf,
  type EventEnvelope,
  type OutboxRow,
} from '@nightporter/contracts';
import type { Delivery } from '@nightporter/consumer';
import { aggregateVersion, epoch, eventId, namespace, slotOf } from '@nightporter/protocol';
import type { PublishRequest } from '@nightporter/relay';
import type { RocketmqSubscriber } from '@nightporter/rocketmq';
import { randomUUID } from 'node:crypto';

export interface Sample {
  readonly topic: string;
  readonly aggregateType?: string;
  readonly aggregateId?: string;
  readonly eventType?: string;
  readonly version?: number;
  readonly payload?: OutboxRow['payload'];
}

/** A request to publish one event, as the relay would make it. */
export function publishRequest(sample: Sample): PublishRequest {
  const { topic, aggregateType = 'sample', aggregateId = 'a', eventType = 'SampleHappened' } = sample;
  const { version = 1, payload = {} } = sample;
  const identity = { source: 'tests', aggregateType, aggregateId };
  const eventKey = defaultEventKey(identity);
  const row: OutboxRow = {
    ...identity,
    namespace: namespace('tests.outbox'),
    eventId: eventId(randomUUID()),
    aggregateVersion: aggregateVersion(version),
    eventType,
    eventVersion: 1,
    topic,
    eventKey,
    slot: slotOf(eventKey),
    payload,
    digest: '',
    headers: {},
    occurredAt: '2026-01-02T03:04:05.678Z',
    status: 'PENDING',
    retryCount: 0,
    revision: 1,
    unanswered: false,
    dueInMs: 0,
    form: 'original',
  };
  return { row: { ...row, digest: digestOf(envelopeOf(row, 'original')) }, relay: 'relay', epoch: epoch(1) };
}

export function envelopeIn(delivery: Delivery): EventEnvelope {
  const decoded = decodeEnvelope(delivery.body);
  if (decoded.kind === 'unreadable') throw new Error(decoded.reason);
  return decoded.envelope;
}

/** Receives without acknowledging until `count` messages have come. */
export async function receiveAll(
  subscriber: RocketmqSubscriber,
  { count, invisibleMs = 60_000, limitMs = 20_000 }: { count: number; invisibleMs?: number; limitMs?: number },
): Promise<Delivery[]> {
  const deadline = performance.now() + limitMs;
  const deliveries: Delivery[] = [];
  while (deliveries.length < count) {
    if (performance.now() > deadline) throw new Error(`${deliveries.length} of ${count} messages within ${limitMs} ms`);
    deliveries.push(...(await subscriber.receive({ max: 32, invisibleMs })));
  }
  return deliveries;
}

/** Tries until `attempt` gives something else than null; rejects after the limit. */
export async function untilGiven<Result>(
  attempt: () => Promise<Result | null>,
  { limitMs, what }: { limitMs: number; what: string },
): Promise<Result> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const result = await attempt();
    if (result !== null) return result;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
