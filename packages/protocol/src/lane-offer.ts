import type { Delivery } from './checkpoint-tracker.js';
import type { LaneBook } from './lane-book.js';
import type { Lane, LaneItem, LaneRow, LaneStep } from './lane.js';

/** A row that stream or sweep brought. */
export interface Sighting<Row extends LaneRow> {
  readonly row: Row;
  readonly sightedAtMs: number;
  /** Settled once the row is settled or deferred. */
  readonly delivery: Delivery | null;
  /** False when outbox and archive have no such row, and this is the stream's copy. */
  readonly inOutbox: boolean;
  /** The reading that brought it shows no unsettled row of the aggregate below it. */
  readonly lowest: boolean;
  /** An earlier owner of the lease may have sent it. */
  readonly inherited: boolean;
}

/** Takes a sighting into its lane. `known` when the relay had the row in hand, or had dropped rows of its lane. */
export function offerRow<Row extends LaneRow>(
  book: LaneBook<Row>,
  sighting: Sighting<Row>,
  nowMs: number,
): 'known' | 'new' {
  const { row, delivery } = sighting;
  if (row.status === 'PUBLISHED') {
    delivery?.settle();
    return 'known';
  }
  const lane = book.laneOf(row);
  if (sighting.inherited) lane.inheritedUpTo = Math.max(lane.inheritedUpTo, row.aggregateVersion);
  const inHand = lane.marking.get(row.eventId) ?? book.queued(lane, row);
  if (inHand !== undefined) {
    if (delivery !== null) inHand.deliveries.push(delivery);
    update(book, inHand, sighting, nowMs);
    return 'known';
  }
  if (lane.hold !== null) {
    offerToHeld(book, lane, sighting, nowMs);
    return 'known';
  }
  const isKnown = lane.deferred || isDoubtful(lane, row);
  enqueue(book, lane, sighting, nowMs);
  return isKnown ? 'known' : 'new';
}

/** What this relay published is marked: an unsettled sighting of it was read before the mark, or the outbox was replaced. */
function isDoubtful<Row extends LaneRow>(lane: Lane<Row>, row: Row): boolean {
  return lane.published !== null && row.aggregateVersion <= lane.published;
}

const IN_USE: ReadonlySet<LaneStep> = new Set(['sending', 'recording', 'claiming']);

/** What is being sent, recorded or claimed stays as it was read: its mark must name the revision and the form that were sent. */
function update<Row extends LaneRow>(
  book: LaneBook<Row>,
  item: LaneItem<Row>,
  { row, inOutbox }: Sighting<Row>,
  nowMs: number,
): void {
  const { lane } = item;
  // A deleted row never comes back, whatever an older reading says.
  if (!inOutbox) item.orphan = true;
  const isInUse = lane.marking.has(row.eventId) || IN_USE.has(lane.step);
  if (isInUse || !inOutbox || row.revision < item.row.revision) return;
  item.row = row;
  item.dueAtMs = nowMs + row.dueInMs;
  book.advance(lane, nowMs);
}

function enqueue<Row extends LaneRow>(
  book: LaneBook<Row>,
  lane: Lane<Row>,
  { row, sightedAtMs, delivery, inOutbox, lowest }: Sighting<Row>,
  nowMs: number,
): void {
  book.insert({
    lane,
    row,
    sightedAtMs,
    dueAtMs: nowMs + row.dueInMs,
    deliveries: delivery === null ? [] : [delivery],
    verified: lowest,
    doubtful: isDoubtful(lane, row),
    orphan: !inOutbox,
    originalUnanswered: false,
    claimedRevision: null,
  });
  book.hasten(lane);
  book.advance(lane, nowMs);
}

/**
 * A held lane defers what the outbox has. The held row itself is judged anew when it is not an older reading; any sign
 * that another row is the lowest has the lane read.
 */
function offerToHeld<Row extends LaneRow>(
  book: LaneBook<Row>,
  lane: Lane<Row>,
  sighting: Sighting<Row>,
  nowMs: number,
): void {
  const { row, delivery, inOutbox, lowest } = sighting;
  const { hold } = lane;
  if (hold === null) return;
  const isMarking = hold.kind === 'marking';
  const isFree = lane.step === 'free' && !isMarking;
  const isHeldRow = row.eventId === hold.eventId;
  if (!inOutbox || isMarking) {
    enqueue(book, lane, sighting, nowMs);
    if (isFree && row.aggregateVersion <= hold.version) book.wantRead(lane);
  } else if (isFree && isHeldRow && row.revision >= hold.revision) {
    book.release(lane);
    enqueue(book, lane, sighting, nowMs);
  } else {
    delivery?.settle();
    lane.deferred = true;
    if (isFree && !isHeldRow && (lowest || row.aggregateVersion < hold.version)) book.wantRead(lane);
  }
}
