import { aggregateVersion, eventId, namespace } from './ids.js';
import type { LaneItem, LaneRow } from './lane.js';
import type { LanePolicy } from './lane-policy.js';
import type { LaneTruth } from './lane-refresh.js';
import { PublishLanes } from './publish-lanes.js';

/** Only tests use this: rows and limits for lanes. */
export const TEST_POLICY: LanePolicy = {
  windowMax: 100,
  bufferMax: 1_000,
  claims: false,
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

export interface LanesDriver {
  readonly lanes: PublishLanes<LaneRow>;
  /** Ids of the rows whose deliveries were settled, in that order. */
  readonly settled: readonly string[];
  see(
    row: LaneRow,
    how?: { inOutbox?: boolean; lowest?: boolean; inherited?: boolean; nowMs?: number },
  ): 'known' | 'new';
  /** The next row to send; throws when there is none. */
  next(nowMs?: number): LaneItem<LaneRow>;
  /** Sends and marks. */
  publish(item: LaneItem<LaneRow>): void;
  /** Answers the read that is wanted; throws when none is. */
  read(rows: readonly LaneRow[], nowMs?: number, lookedUp?: LaneTruth<LaneRow>['lookedUp']): void;
}

export function driveLanes(policy: Partial<LanePolicy> = {}): LanesDriver {
  const lanes = new PublishLanes<LaneRow>({ ...TEST_POLICY, ...policy }, () => 0);
  const settled: string[] = [];
  return {
    lanes,
    settled,
    see(row, { inOutbox = true, lowest = false, inherited = false, nowMs = 0 } = {}) {
      const delivery = { settle: () => settled.push(row.eventId) };
      return lanes.offer({ row, sightedAtMs: nowMs, delivery, inOutbox, lowest, inherited }, nowMs);
    },
    next(nowMs = 0) {
      const item = lanes.nextSend(nowMs);
      if (item === null) throw new Error('nothing to send');
      return item;
    },
    publish(item) {
      lanes.sent(item, 0);
      lanes.markedPublished(item, 'done', 0);
    },
    read(rows, nowMs = 0, lookedUp = new Map()) {
      const { lanes: wanted, limit } = lanes.nextReads(1);
      const [lane] = wanted;
      if (lane === undefined) throw new Error('no read is wanted');
      lanes.refresh(lane, { rows: rows.slice(0, limit), limit, lookedUp }, nowMs);
    },
  };
}

export function idsOf(items: readonly (LaneItem<LaneRow> | null)[]): readonly unknown[] {
  return items.map((item) => item?.row.eventId ?? null);
}
