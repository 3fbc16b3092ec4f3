import type { LaneBook } from './lane-book.js';
import { settleAll, type Lane, type LaneItem, type LaneRow } from './lane.js';
import type { EventId } from './ids.js';

/** Lanes that are being read: of each, its `limit` lowest unsettled rows. */
export interface LaneReading<Row extends LaneRow> {
  readonly lanes: readonly Lane<Row>[];
  readonly limit: number;
}

/** What the outbox says of one lane. */
export interface LaneTruth<Row extends LaneRow> {
  /** Its lowest unsettled rows, by version. */
  readonly rows: readonly Row[];
  /** How many were asked for. */
  readonly limit: number;
  /** What became of the rows in hand that are not among them: see {@link notShown}. */
  readonly lookedUp: ReadonlyMap<EventId, Row | 'archived' | 'missing'>;
}

/** Rows in hand that a reading did not show although it reached as far: published meanwhile, or deleted. They are to be looked up. */
export function notShown<Row extends LaneRow>(
  lane: Lane<Row>,
  rows: readonly Row[],
  limit: number,
): readonly LaneItem<Row>[] {
  const last = rows.at(-1);
  const reach = last !== undefined && rows.length >= limit ? last.aggregateVersion : Infinity;
  const shown = new Set(rows.map((row) => row.eventId));
  return lane.queue.filter(({ row }) => row.aggregateVersion <= reach && !shown.has(row.eventId));
}

/** Puts the outbox's truth in the place of what the lane believed. */
export function refreshLane<Row extends LaneRow>(
  book: LaneBook<Row>,
  lane: Lane<Row>,
  { rows, limit, lookedUp }: LaneTruth<Row>,
  nowMs: number,
): void {
  const unseen = new Map(rows.map((row) => [row.eventId, row]));
  for (const item of [...lane.queue]) {
    const truth = unseen.get(item.row.eventId) ?? lookedUp.get(item.row.eventId);
    unseen.delete(item.row.eventId);
    if (truth !== undefined) believe(book, item, truth, nowMs);
  }
  for (const row of unseen.values()) book.insert(readItem(lane, row, nowMs));
  verifyFirst(lane, rows);
  const isCutShort = rows.length >= limit;
  lane.deferred ||= isCutShort && (lane.deferredBeforeRead || unseen.size > 0);
}

function believe<Row extends LaneRow>(
  book: LaneBook<Row>,
  item: LaneItem<Row>,
  truth: Row | 'archived' | 'missing',
  nowMs: number,
): void {
  item.doubtful = false;
  if (truth === 'missing') {
    item.orphan = true;
  } else if (truth === 'archived' || truth.status === 'PUBLISHED') {
    book.remove(item);
    settleAll(item);
  } else if (truth.revision >= item.row.revision) {
    item.row = truth;
    item.dueAtMs = nowMs + truth.dueInMs;
  }
}

/**
 * Whatever the outbox has below the first row stands before it by now. What is left to ask is whether the reading can vouch for
 * that: the row was known when the reading began, so all below it had committed, or the reading itself shows it.
 */
function verifyFirst<Row extends LaneRow>(lane: Lane<Row>, rows: readonly Row[]): void {
  const first = lane.queue[0];
  if (first === undefined) return;
  const isShown = rows[0]?.eventId === first.row.eventId;
  if (isShown || first.row.aggregateVersion <= lane.readFor) first.verified = true;
}

function readItem<Row extends LaneRow>(lane: Lane<Row>, row: Row, nowMs: number): LaneItem<Row> {
  return {
    lane,
    row,
    sightedAtMs: nowMs,
    dueAtMs: nowMs + row.dueInMs,
    deliveries: [],
    verified: false,
    doubtful: false,
    orphan: false,
    originalUnanswered: false,
    claimedRevision: null,
  };
}
