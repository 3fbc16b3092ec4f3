import type { Delivery } from './checkpoint-tracker.js';
import { aggregateKey, type AggregateIdentity, type AggregateKey, type AggregateVersion } from './ids.js';
import type { EventId, Namespace } from './ids.js';

/** What the lanes need to know of an outbox row. */
export interface LaneRow extends AggregateIdentity {
  readonly namespace: Namespace;
  readonly eventId: EventId;
  readonly aggregateVersion: AggregateVersion;
  readonly topic: string;
  readonly status: 'PENDING' | 'PROCESSING' | 'PUBLISHED' | 'FAILED' | 'DEAD';
  readonly retryCount: number;
  readonly revision: number;
  readonly unanswered: boolean;
  readonly form: 'original' | 'tombstone';
  /** Milliseconds from the reading of the row until it may be tried. */
  readonly dueInMs: number;
}

/** A row in the relay's hands: waiting, being sent, or sent and not yet marked. */
export interface LaneItem<Row extends LaneRow> {
  readonly lane: Lane<Row>;
  row: Row;
  readonly sightedAtMs: number;
  /** When a FAILED or claimed row may be tried. */
  dueAtMs: number;
  /** Settled once the row is settled or deferred. */
  deliveries: Delivery[];
  /** The outbox has shown no unsettled row of the aggregate below this one. That stays true: versions commit in order. */
  verified: boolean;
  /** What is known of the row may be out of date; the outbox is read before it is sent. */
  doubtful: boolean;
  /** Outbox and archive have no such row: it is sent from the stream's copy, and cannot be deferred. */
  orphan: boolean;
  /** A send of the original had no answer. */
  originalUnanswered: boolean;
  /** The row is claimed by this relay while it has this revision. */
  claimedRevision: number | null;
}

/**
 * What a lane is doing. `free`: nothing. `ready`: its first row may be sent as soon as the window has room. `sending`: one
 * send is in flight. `awaits-claim`: its first row is to be claimed before it is sent; `claiming`: the claim is being written. `retrying`: its first row waits after a transient failure. `recording`: a mark says that a send had
 * no answer. `wants-read`: the outbox is to be read as soon as nothing of the lane waits for its mark, since what is read must
 * not be half ours. `awaits-read`: is in line for that. `reading`: is being read.
 */
export type LaneStep =
  | 'free'
  | 'awaits-claim'
  | 'claiming'
  | 'ready'
  | 'sending'
  | 'retrying'
  | 'recording'
  | 'wants-read'
  | 'awaits-read'
  | 'reading';

/**
 * Why nothing of a lane is sent: its row `version` is FAILED and not yet due, DEAD, claimed by a polling relay, of a closed
 * or paused topic, or its FAILED or DEAD mark is being written (`marking`).
 */
export interface Hold {
  readonly kind: 'failed' | 'dead' | 'claimed' | 'topic' | 'marking';
  readonly eventId: EventId;
  readonly version: AggregateVersion;
  readonly topic: string;
  /** A sighting of the held row with a lower revision is out of date. */
  readonly revision: number;
}

/** All that the relay knows of one aggregate. A cache of the outbox, never an authority. */
export interface Lane<Row extends LaneRow> {
  readonly key: string;
  readonly namespace: Namespace;
  readonly aggregate: AggregateKey;
  step: LaneStep;
  hold: Hold | null;
  /** By ascending version; a row leaves it when the broker has it, or when it is set aside. */
  queue: LaneItem<Row>[];
  /** Rows whose mark is being written. */
  readonly marking: Map<EventId, LaneItem<Row>>;
  /** The version that this relay published last: the next one may follow it. */
  published: AggregateVersion | null;
  /** Rows were dropped because the lane was held; the outbox has them. */
  deferred: boolean;
  /** Up to this version an earlier owner of the lease may have sent rows. */
  inheritedUpTo: number;
  /** Transient failures in a row of the first row, and when the first of them was. */
  failures: number;
  firstFailureAtMs: number;
  /** The highest queued version when the running read began: what lies below it had committed by then. */
  readFor: number;
  deferredBeforeRead: boolean;
  /** Tells a due time of this lane from an older one. */
  stamp: number;
}

/** Aggregates of different outboxes never share a lane. */
export function laneKeyOf(row: LaneRow): string {
  return `${row.namespace} ${aggregateKey(row)}`;
}

export function createLane<Row extends LaneRow>(key: string, row: Row, published: AggregateVersion | null): Lane<Row> {
  return {
    key,
    namespace: row.namespace,
    aggregate: aggregateKey(row),
    step: 'free',
    hold: null,
    queue: [],
    marking: new Map(),
    published,
    deferred: false,
    inheritedUpTo: 0,
    failures: 0,
    firstFailureAtMs: 0,
    readFor: 0,
    deferredBeforeRead: false,
    stamp: 0,
  };
}

/** The predecessor rule (I4): version 1, behind what this relay published itself, or shown by the outbox to be next. */
export function mayBeSent<Row extends LaneRow>({ lane, row, verified }: LaneItem<Row>): boolean {
  return row.aggregateVersion === 1 || verified || lane.published === row.aggregateVersion - 1;
}

/** The outbox has to learn of an unanswered original before anything else happens to the row. */
export function mustBeRecorded<Row extends LaneRow>(item: LaneItem<Row>): boolean {
  return item.originalUnanswered && !item.row.unanswered && !item.orphan;
}

/** Nothing has to be read or recorded before the row is sent. */
export function isSendable<Row extends LaneRow>(item: LaneItem<Row>): boolean {
  return !item.doubtful && !mustBeRecorded(item) && mayBeSent(item);
}

/** Of what the outbox does not have, nothing can be claimed. */
export function isClaimed<Row extends LaneRow>({ row, orphan, claimedRevision }: LaneItem<Row>): boolean {
  return orphan || claimedRevision === row.revision;
}

/** Only what the outbox holds, and all that it should know, may be dropped from memory. */
export function mayBeDeferred<Row extends LaneRow>(item: LaneItem<Row>): boolean {
  return !item.orphan && !mustBeRecorded(item);
}

/** Where a version stands, or would stand, in a lane's queue. */
export function placeOf<Row extends LaneRow>(queue: readonly LaneItem<Row>[], version: AggregateVersion): number {
  let low = 0;
  let high = queue.length;
  const last = queue.at(-1);
  if (last === undefined || last.row.aggregateVersion < version) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    const item = queue[middle];
    if (item !== undefined && item.row.aggregateVersion < version) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function settleAll<Row extends LaneRow>(item: LaneItem<Row>): void {
  for (const delivery of item.deliveries) delivery.settle();
  item.deliveries = [];
}
