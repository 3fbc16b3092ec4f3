import { aggregateKey, aggregateVersion, eventId, namespace } from './ids.js';
import type { LaneRow } from './lane.js';
import type { LanePolicy } from './lane-policy.js';

/** Only tests use this: rows and limits for lanes. */
export const TEST_POLICY: LanePolicy = {
  windowMax: 100,
  bufferMax: 1_000,
  heldLanesMax: 100,
  rememberedLanesMax: 100,
  laneRowsMax: 10,
  heldReadEveryMs: 5_000,
  heldReadEveryMaxMs: 60_000,
  attemptsMax: 2,
  stalledAfter: 3,
  transientBackoff: { firstMs: 100, maxMs: 1_000 },
  topicBackoff: { firstMs: 1_000, maxMs: 8_000 },
  failedBackoff: { firstMs: 2_000, maxMs: 8_000 },
};

export function testRow(aggregateId: string, version: number, changes: Partial<LaneRow> = {}): LaneRow {
  return {
    namespace: namespace('orders.outbox'),
    eventId: eventId(`${aggregateId}/${version}`),
    source: 'orders',
    aggregateType: 'order',
    aggregateId,
    aggregateVersion: aggregateVersion(version),
    topic: 'orders-events',
    status: 'PENDING',
    retryCount: 0,
    revision: 1,
    unanswered: false,
    form: 'original',
    dueInMs: 0,
    ...changes,
  };
}

export function testLane(aggregateId: string): ReturnType<typeof aggregateKey> {
  return aggregateKey({ source: 'orders', aggregateType: 'order', aggregateId });
}
