import { DueQueue } from './due-queue.js';
import { Fifo } from './fifo.js';
import {
  createLane,
  isClaimed,
  isSendable,
  laneKeyOf,
  mayBeDeferred,
  mayBeSent,
  mustBeRecorded,
  placeOf,
  settleAll,
  type Hold,
  type Lane,
  type LaneItem,
  type LaneRow,
} from './lane.js';
import { heldReadDelayMs, type LaneLimits } from './lane-policy.js';
import { LaneMemory } from './lane-memory.js';
import { TopicGates } from './topic-gates.js';

/** How many of the oldest held lanes are looked at when one is to be forgotten. */
const FORGET_CANDIDATES = 8;

type DueWork<Row extends LaneRow> =
  | { readonly kind: 'lane'; readonly lane: Lane<Row>; readonly stamp: number }
  | { readonly kind: 'topic'; readonly topic: string };

/**
 * The lanes themselves, and the one function that moves a lane on: {@link LaneBook.advance}. Whatever happens to a lane
 * first changes its facts and then advances it.
 */
export class LaneBook<Row extends LaneRow> {
  readonly limits: LaneLimits;
  readonly gates = new TopicGates<Lane<Row>>();
  /** Lanes whose first row may be sent. */
  readonly ready = new Fifo<Lane<Row>>();
  /** Lanes whose first row may be sent once it is claimed. */
  readonly toClaim = new Fifo<Lane<Row>>();
  /** Lanes whose reading makes room: those that hold rows, and those that probe a topic. */
  readonly urgentReads = new Fifo<Lane<Row>>();
  /** Lanes that hold nothing, and are read when there is room. */
  readonly idleReads = new Fifo<Lane<Row>>();
  /** Rows of which the outbox has to learn that a send had no answer. */
  readonly toRecord = new Fifo<LaneItem<Row>>();
  /** The longest held first. */
  readonly held = new Set<Lane<Row>>();
  rowsInMemory = 0;
  /** Held lanes that were forgotten to keep memory bounded. */
  heldLanesForgotten = 0;
  sweepWanted = false;
  readonly #lanes = new Map<string, Lane<Row>>();
  readonly #memory: LaneMemory;
  readonly #due = new DueQueue<DueWork<Row>>();

  constructor(limits: LaneLimits) {
    this.limits = limits;
    this.#memory = new LaneMemory(limits.rememberedLanesMax);
  }

  get nextDueAtMs(): number | null {
    return this.#due.nextAtMs;
  }

  find(row: LaneRow): Lane<Row> | undefined {
    return this.#lanes.get(laneKeyOf(row));
  }

  laneOf(row: Row): Lane<Row> {
    const key = laneKeyOf(row);
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const lane = createLane(key, row, this.#memory.recall(key));
    this.#lanes.set(key, lane);
    return lane;
  }

  /** Takes a row into its lane's queue. */
  insert(item: LaneItem<Row>): void {
    const { queue } = item.lane;
    queue.splice(placeOf(queue, item.row.aggregateVersion), 0, item);
    this.rowsInMemory += 1;
  }

  /** The row as it waits in its lane, by version; two rows of one version are told apart by their ids. */
  queued(lane: Lane<Row>, row: LaneRow): LaneItem<Row> | undefined {
    for (let place = placeOf(lane.queue, row.aggregateVersion); ; place += 1) {
      const item = lane.queue[place];
      if (item?.row.aggregateVersion !== row.aggregateVersion) return undefined;
      if (item.row.eventId === row.eventId) return item;
    }
  }

  remove(item: LaneItem<Row>): void {
    const { queue } = item.lane;
    const place = queue.indexOf(item);
    if (place < 0) return;
    queue.splice(place, 1);
    this.rowsInMemory -= 1;
  }

  /** From the queue to those whose mark is being written; the row stays in memory. */
  toMarking(item: LaneItem<Row>): void {
    this.remove(item);
    item.lane.marking.set(item.row.eventId, item);
    this.rowsInMemory += 1;
  }

  /** The mark is written: the row is no longer in the relay's hands. */
  marked(item: LaneItem<Row>): void {
    if (item.lane.marking.delete(item.row.eventId)) this.rowsInMemory -= 1;
    settleAll(item);
  }

  /** Moves a lane on as far as its facts allow. */
  advance(lane: Lane<Row>, nowMs: number): void {
    if (lane.step === 'wants-read') this.#lineUp(lane);
    if (lane.step !== 'free') return;
    const first = lane.queue[0];
    if (first === undefined) {
      if (lane.hold === null) this.#rest(lane);
    } else if (first.doubtful) {
      this.wantRead(lane);
    } else if (mustBeRecorded(first)) {
      lane.step = 'recording';
      this.toRecord.push(first);
    } else if (lane.hold === null) {
      this.#sendOrHold(first, nowMs);
    }
  }

  /** The first row of a lane in line, or null when its topic has closed or another row has come before it since. */
  stillFirst(lane: Lane<Row>, step: 'ready' | 'awaits-claim', nowMs: number): LaneItem<Row> | null {
    if (lane.step !== step) return null;
    const first = lane.queue[0];
    const isNext = first !== undefined && isSendable(first) && this.#needsClaim(first) === (step === 'awaits-claim');
    if (isNext && this.#whyHeld(first, nowMs) === null) return first;
    lane.step = 'free';
    this.advance(lane, nowMs);
    return null;
  }

  /** Has the outbox read for a lane. */
  wantRead(lane: Lane<Row>): void {
    if (lane.step !== 'free') return;
    lane.step = 'wants-read';
    this.#lineUp(lane);
  }

  /** A row came to a lane that is in line already: it can no longer wait for room. */
  hasten(lane: Lane<Row>): void {
    if (lane.step === 'awaits-read' && lane.queue.length === 1) this.urgentReads.push(lane);
  }

  /**
   * Holds a lane and drops what the outbox has; not while the mark is still being written, since until then the outbox does
   * not show why they should wait.
   */
  hold(lane: Lane<Row>, hold: Hold, dueAtMs: number | null): void {
    this.release(lane);
    this.#endProbe(lane);
    lane.hold = hold;
    this.held.add(lane);
    if (hold.kind !== 'marking') this.#defer(lane);
    if (dueAtMs !== null) this.wakeAt(lane, dueAtMs);
    if (this.held.size > this.limits.heldLanesMax) this.#forgetOne(lane);
  }

  release(lane: Lane<Row>): void {
    lane.hold = null;
    lane.stamp += 1;
    this.held.delete(lane);
  }

  wakeAt(lane: Lane<Row>, atMs: number): void {
    lane.stamp += 1;
    this.#due.push(atMs, { kind: 'lane', lane, stamp: lane.stamp });
  }

  probeAt(topic: string, atMs: number): void {
    this.#due.push(atMs, { kind: 'topic', topic });
  }

  /** Does what is due. */
  wake(nowMs: number): void {
    for (let due = this.#due.popDue(nowMs); due !== undefined; due = this.#due.popDue(nowMs)) {
      if (due.kind === 'topic') this.#probe(due.topic);
      else if (due.lane.stamp === due.stamp) this.#wakeLane(due.lane, nowMs);
    }
  }

  openTopic(topic: string): void {
    if (this.gates.open(topic)) this.sweepWanted = true;
  }

  /** When a lane behind a row that only somebody else can move is read again. */
  heldReadAtMs(nowMs: number): number {
    return nowMs + heldReadDelayMs(this.limits, this.held.size);
  }

  /** An outbox may have been replaced: nothing published before says anything about what comes now. */
  forgetPublished(): void {
    this.#memory.clear();
    for (const lane of this.#lanes.values()) lane.published = null;
  }

  #sendOrHold(first: LaneItem<Row>, nowMs: number): void {
    const { lane, row } = first;
    const kind = this.#whyHeld(first, nowMs);
    if (kind !== null) {
      const dueAtMs = this.#dueAtMs(kind, first, nowMs);
      const { eventId, aggregateVersion: version, topic, revision } = row;
      this.hold(lane, { kind, eventId, version, topic, revision }, dueAtMs);
      this.advance(lane, nowMs);
    } else if (mayBeSent(first)) {
      lane.step = this.#needsClaim(first) ? 'awaits-claim' : 'ready';
      (lane.step === 'ready' ? this.ready : this.toClaim).push(lane);
    } else {
      this.wantRead(lane);
    }
  }

  #needsClaim(item: LaneItem<Row>): boolean {
    return this.limits.claims && !isClaimed(item);
  }

  #whyHeld({ lane, row, dueAtMs }: LaneItem<Row>, nowMs: number): Hold['kind'] | null {
    if (row.status === 'DEAD') return 'dead';
    if (row.status === 'PROCESSING') return 'claimed';
    if (row.status === 'FAILED' && dueAtMs > nowMs) return 'failed';
    return this.gates.admits(row.topic, lane) ? null : 'topic';
  }

  /** The opening of a topic brings a sweep, which finds all of its lanes but those of rows that the outbox does not have. */
  #dueAtMs(kind: Hold['kind'], item: LaneItem<Row>, nowMs: number): number | null {
    if (kind === 'topic' && item.lane.queue.every(mayBeDeferred)) return null;
    const waits = kind === 'failed' || (kind === 'claimed' && item.dueAtMs > nowMs);
    return waits ? item.dueAtMs : this.heldReadAtMs(nowMs);
  }

  #defer(lane: Lane<Row>): void {
    const kept = lane.queue.filter((item) => !mayBeDeferred(item));
    for (const item of lane.queue) if (mayBeDeferred(item)) settleAll(item);
    if (kept.length < lane.queue.length) lane.deferred = true;
    this.rowsInMemory -= lane.queue.length - kept.length;
    lane.queue = kept;
  }

  #lineUp(lane: Lane<Row>): void {
    if (lane.marking.size > 0) return;
    lane.step = 'awaits-read';
    const isUrgent = lane.queue.length > 0 || this.gates.probedBy(lane) !== null;
    (isUrgent ? this.urgentReads : this.idleReads).push(lane);
  }

  /** Nothing is queued: what was dropped is read again; then only the published version is kept. */
  #rest(lane: Lane<Row>): void {
    if (lane.marking.size > 0) return;
    if (lane.deferred) {
      this.wantRead(lane);
      return;
    }
    this.#forget(lane);
  }

  #forget(lane: Lane<Row>): void {
    this.#endProbe(lane);
    this.#lanes.delete(lane.key);
    if (lane.published !== null) this.#memory.remember(lane.key, lane.published);
  }

  #wakeLane(lane: Lane<Row>, nowMs: number): void {
    if (lane.step === 'retrying') {
      lane.step = 'free';
      this.advance(lane, nowMs);
    } else if (lane.hold !== null) {
      this.wantRead(lane);
    }
  }

  #probe(topic: string): void {
    if (!this.gates.awaitsProbe(topic)) return;
    const lane = this.#longestHeldOf(topic);
    if (lane === null) {
      this.openTopic(topic);
      return;
    }
    this.gates.probe(topic, lane);
    if (lane.step === 'awaits-read') this.urgentReads.push(lane);
    else this.wantRead(lane);
  }

  /** A lane that has probed in vain is held anew, so that the next one has its turn. */
  #longestHeldOf(topic: string): Lane<Row> | null {
    for (const lane of this.held) if (lane.hold?.kind === 'topic' && lane.hold.topic === topic) return lane;
    return null;
  }

  /** A lane that cannot go on probing must not keep its topic closed: the next failure closes it again. */
  #endProbe(lane: Lane<Row>): void {
    const topic = this.gates.probedBy(lane);
    if (topic !== null) this.openTopic(topic);
  }

  /** Forgets an old held lane; a sweep brings it back. */
  #forgetOne(newest: Lane<Row>): void {
    let candidates = FORGET_CANDIDATES;
    for (const lane of this.held) {
      const idle = lane.step === 'free' && lane.queue.length === 0 && lane.marking.size === 0;
      if (idle && lane !== newest) {
        this.release(lane);
        this.#forget(lane);
        this.heldLanesForgotten += 1;
        return;
      }
      candidates -= 1;
      if (candidates === 0) return;
    }
  }
}
