import { randomUUID } from 'node:crypto';
import { defaultEventKey, digestOf, envelopeOf, type OutboxRow } from '@nightporter/contracts';
import { aggregateVersion, epoch, eventId, namespace, slotOf } from '@nightporter/protocol';
import { createPublisher } from '@nightporter/rocketmq';

export const MEASURED_EVENT = 'SampleMeasured';

/** Sends at most this many aggregates' messages at once. */
const AGGREGATES_AT_ONCE = 64;

/** Sends dense versions of each aggregate in order, as the relay would, to one topic. */
export async function sendMessages({
  endpoints,
  topic,
  count,
  aggregates,
}: {
  endpoints: string;
  topic: string;
  count: number;
  aggregates: number;
}): Promise<void> {
  const publisher = await createPublisher({ endpoints, topics: [topic] });
  try {
    let next = 0;
    const sendAggregates = async (): Promise<void> => {
      while (next < aggregates) {
        const index = next;
        next += 1;
        const versions = Math.floor(count / aggregates) + (index < count % aggregates ? 1 : 0);
        for (let version = 1; version <= versions; version += 1) {
          const row = measuredRow(topic, `a${index}`, version);
          await publisher.publish({ row, relay: 'bench', epoch: epoch(1) });
        }
      }
    };
    await Promise.all(Array.from({ length: AGGREGATES_AT_ONCE }, sendAggregates));
  } finally {
    await publisher.close();
  }
}

/** A row as a relay has read it. */
export function measuredRow(topic: string, aggregateId: string, version: number): OutboxRow {
  const identity = { source: 'bench', aggregateType: 'sample', aggregateId };
  const eventKey = defaultEventKey(identity);
  const row: OutboxRow = {
    ...identity,
    namespace: namespace('bench.outbox'),
    eventId: eventId(randomUUID()),
    aggregateVersion: aggregateVersion(version),
    eventType: MEASURED_EVENT,
    eventVersion: 1,
    topic,
    eventKey,
    slot: slotOf(eventKey),
    payload: { customerId: `customer of ${aggregateId}`, currency: 'EUR', totalMinor: 1_000 + version },
    digest: '',
    headers: {},
    occurredAt: new Date().toISOString(),
    status: 'PENDING',
    retryCount: 0,
    revision: 1,
    unanswered: false,
    dueInMs: 0,
    form: 'original',
  };
  return { ...row, digest: digestOf(envelopeOf(row, 'original')) };
}
