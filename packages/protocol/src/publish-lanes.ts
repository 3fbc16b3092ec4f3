import { backoffMs } from './backoff.js';
import type { Random } from './clock.js';
import { LaneBook } from './lane-book.js';
import type { LanePolicy } from './lane-policy.js';
import type { Lane, LaneItem, LaneRow } from './lane.js';
import { offerRow, type Sighting } from './lane-offer.js';
import { refreshLane, type LaneReading, type LaneTruth } from './lane-refresh.js';
import type { Pause } from './pause.js';
import { decideFailure, type FailureVerdict, type SendFailure } from './publish-failure.js';

/** What became of a mark: see the relay's `MarkOutcome`. */
export type MarkResult = 'done' | 'refused' | 'missing';

/**
 * Which rows may be sent, in which order. Synchronous, without I/O: told what was seen and what happened, and asked for
 * the next send, read or mark.
 *
 * Every aggregate of every outbox is a lane. A row that is seen waits in its lane's queue. The lane's first row is sent when the
 * predecessor rule (I4) allows it: it is version 1, or this relay published the version before it, or the outbox, read
 * after the row was seen, has no unsettled row below it. At most one send of a lane is in flight. A row that was sent
 * waits for its mark; until then every further sighting of it waits with it. A lane whose first row is FAILED, DEAD,
 * claimed, or of a closed or paused topic is held: its rows are dropped (the outbox has them) and count as deferred. It is read
 * again when its row is due, when a sweep sees another truth, and after a refused mark; what it holds is never believed
 * longer than that.
 */
export class PublishLanes<Row extends LaneRow> {
  readonly #book: LaneBook<Row>;
  readonly #policy: LanePolicy;
  readonly #random: Random;
  #sendsInFlight = 0;
  #claimsInFlight = 0;

  constructor(policy: LanePolicy, random: Random) {
    this.#book = new LaneBook(policy);
    this.#policy = policy;
    this.#random = random;
  }

  get sendsInFlight(): number {
    return this.#sendsInFlight;
  }

  get rowsInMemory(): number {
    return this.#book.rowsInMemory;
  }

  /** While false, nothing more should be read from stream or outbox. */
  get hasRoom(): boolean {
    return this.#book.rowsInMemory < this.#policy.bufferMax;
  }

  get lanesHeld(): number {
    return this.#book.held.size;
  }

  get heldLanesForgotten(): number {
    return this.#book.heldLanesForgotten;
  }

  get topicsClosed(): readonly string[] {
    return this.#book.gates.closed;
  }

  /** When {@link wake} has something to do. */
  get nextDueAtMs(): number | null {
    return this.#book.nextDueAtMs;
  }

  /** What operators have paused: nothing of it is sent any more, its rows are deferred, and what is resumed is swept. */
  setPause(pause: Pause): void {
    if (this.#book.gates.setPause(pause)) this.#book.sweepWanted = true;
  }

  /** Takes what stream or sweep brought. `known` when the relay had the row in hand, or its lane held. */
  offer(sighting: Sighting<Row>, nowMs: number): 'known' | 'new' {
    return offerRow(this.#book, sighting, nowMs);
  }

  /** The next row to send, or null while none may be sent or the window is full. The caller owes its outcome. */
  nextSend(nowMs: number): LaneItem<Row> | null {
    while (this.#sendsInFlight < this.#policy.windowMax) {
      const lane = this.#book.ready.shift();
      if (lane === undefined) return null;
      const first = this.#book.stillFirst(lane, 'ready', nowMs);
      if (first === null) continue;
      lane.step = 'sending';
      this.#sendsInFlight += 1;
      return first;
    }
    return null;
  }

  /** The next row to claim before it is sent, as long as the window has places for it. The caller owes the outcome. */
  nextToClaim(nowMs: number): LaneItem<Row> | null {
    while (this.#sendsInFlight + this.#book.ready.size + this.#claimsInFlight < this.#policy.windowMax) {
      const lane = this.#book.toClaim.shift();
      if (lane === undefined) return null;
      const first = this.#book.stillFirst(lane, 'awaits-claim', nowMs);
      if (first === null) continue;
      lane.step = 'claiming';
      this.#claimsInFlight += 1;
      return first;
    }
    return null;
  }

  /** A claim of the row at `revision` was written, refused because the row had changed, or found no row. */
  claimed(item: LaneItem<Row>, { result, revision }: { result: MarkResult; revision: number }, nowMs: number): void {
    this.#claimsInFlight -= 1;
    if (result === 'done') {
      item.claimedRevision = revision + 1;
      item.row = { ...item.row, revision: revision + 1 };
    } else if (result === 'missing') item.orphan = true;
    else item.doubtful = true;
    this.#free(item.lane, nowMs);
  }

  /** The broker has the row. The caller owes a published mark. */
  sent(item: LaneItem<Row>, nowMs: number): void {
    const { lane, row } = item;
    this.#sendsInFlight -= 1;
    this.#book.toMarking(item);
    lane.published = row.aggregateVersion;
    lane.failures = 0;
    this.#book.gates.succeeded(row.topic, nowMs);
    this.#book.openTopic(row.topic);
    this.#free(lane, nowMs);
  }

  /** A send failed. With `set-aside` the caller owes a failed mark. */
  failed(item: LaneItem<Row>, failure: SendFailure, nowMs: number): FailureVerdict & { retryInMs: number } {
    this.#sendsInFlight -= 1;
    const { lane, row } = item;
    if (!failure.answered && row.form === 'original') item.originalUnanswered = true;
    if (failure.failure === 'transient') {
      if (lane.failures === 0) lane.firstFailureAtMs = nowMs;
      lane.failures += 1;
    }
    const verdict = decideFailure(
      {
        ...failure,
        row,
        orphan: item.orphan,
        originalMayHaveLanded: item.originalUnanswered || row.aggregateVersion <= lane.inheritedUpTo,
        transientFailures: lane.failures,
        topicTakesOthers: this.#book.gates.hasSucceededSince(row.topic, lane.firstFailureAtMs),
        probesTopic: this.#book.gates.probedBy(lane) === row.topic,
      },
      this.#policy,
    );
    if (verdict.kind === 'close-topic') return { ...verdict, retryInMs: this.#closeTopic(item, failure, nowMs) };
    return { ...verdict, retryInMs: this.#carryOut(verdict, item, nowMs) };
  }

  /** A published mark was written, or found no row. */
  markedPublished(item: LaneItem<Row>, result: MarkResult, nowMs: number): void {
    this.#book.marked(item);
    if (result === 'refused') item.lane.deferred = true;
    this.#book.advance(item.lane, nowMs);
  }

  /** A failed mark was written, refused because the row had changed, or found no row. */
  markedFailed(
    item: LaneItem<Row>,
    mark: { result: MarkResult; status: 'FAILED' | 'DEAD'; retryInMs: number },
    nowMs: number,
  ): void {
    const { lane, row } = item;
    this.#book.marked(item);
    const { eventId, aggregateVersion: version, topic } = row;
    if (mark.result === 'done') {
      const kind = mark.status === 'DEAD' ? 'dead' : 'failed';
      const dueAtMs = kind === 'dead' ? this.#book.heldReadAtMs(nowMs) : nowMs + mark.retryInMs;
      this.#book.hold(lane, { kind, eventId, version, topic, revision: row.revision + 1 }, dueAtMs);
    } else if (mark.result === 'missing') {
      this.#book.release(lane);
    } else {
      this.#book.wantRead(lane);
    }
    this.#book.advance(lane, nowMs);
  }

  /** Rows of which a mark has to say that a send had no answer, oldest first. The caller owes the outcome. */
  nextToRecord(): LaneItem<Row> | null {
    return this.#book.toRecord.shift() ?? null;
  }

  recorded(item: LaneItem<Row>, result: MarkResult, nowMs: number): void {
    if (result !== 'refused') item.originalUnanswered = false;
    if (result === 'missing') item.orphan = true;
    item.doubtful = true;
    this.#free(item.lane, nowMs);
  }

  /** Lanes to read from the outbox by one query, at most `max`; none when nothing has to be read. The caller owes the outcome. */
  nextReads(max: number): LaneReading<Row> {
    const lanes: Lane<Row>[] = [];
    const take = (from: { shift(): Lane<Row> | undefined }): boolean => {
      const lane = from.shift();
      if (lane === undefined) return false;
      if (lane.step === 'awaits-read') lanes.push(beginRead(lane));
      return true;
    };
    while (lanes.length < max && take(this.#book.urgentReads));
    while (lanes.length < max && this.hasRoom && take(this.#book.idleReads));
    return { lanes, limit: this.#rowsPerLane(lanes) };
  }

  /** What was read of a lane: its lowest unsettled rows, at most the reading's limit, and what became of those looked up. */
  refresh(lane: Lane<Row>, truth: LaneTruth<Row>, nowMs: number): void {
    const topic = this.#book.gates.probedBy(lane);
    this.#book.release(lane);
    lane.step = 'free';
    refreshLane(this.#book, lane, truth, nowMs);
    this.#book.advance(lane, nowMs);
    if (topic !== null && !isReadyFor(lane, topic)) this.#book.openTopic(topic);
  }

  /** Does what has become due by `nowMs`. */
  wake(nowMs: number): void {
    this.#book.wake(nowMs);
  }

  /** Whether a sweep is wanted, because a topic opened or was resumed; asked once. */
  takeSweepWanted(): boolean {
    const wanted = this.#book.sweepWanted;
    this.#book.sweepWanted = false;
    return wanted;
  }

  /** Whether rows of this aggregate above `row` would only be deferred: a sweep may pass them over. */
  isHeldBelow(row: Row): boolean {
    const hold = this.#book.find(row)?.hold;
    return hold !== undefined && hold !== null && hold.version < row.aggregateVersion;
  }

  /** An outbox was dropped or replaced: what was published before permits nothing any more. */
  forgetPublished(): void {
    this.#book.forgetPublished();
  }

  /** A topic that may take messages again at any moment is probed as often as a single row would be sent again. */
  #closeTopic({ lane, row }: LaneItem<Row>, { failure }: SendFailure, nowMs: number): number {
    const failures = this.#book.gates.close(row.topic, lane);
    const { topicBackoff, transientBackoff, stalledAfter } = this.#policy;
    const delayMs =
      failure === 'transient'
        ? backoffMs(transientBackoff, stalledAfter + Math.max(0, failures - 1), this.#random)
        : backoffMs(topicBackoff, Math.max(1, failures), this.#random);
    if (failures > 0) this.#book.probeAt(row.topic, nowMs + delayMs);
    this.#free(lane, nowMs);
    return delayMs;
  }

  #carryOut(verdict: Exclude<FailureVerdict, { kind: 'close-topic' }>, item: LaneItem<Row>, nowMs: number): number {
    const { lane, row } = item;
    switch (verdict.kind) {
      case 'retry': {
        const delayMs = backoffMs(this.#policy.transientBackoff, lane.failures, this.#random);
        lane.step = 'retrying';
        this.#book.wakeAt(lane, nowMs + delayMs);
        return delayMs;
      }
      case 'record-unanswered':
        item.originalUnanswered = true;
        this.#free(lane, nowMs);
        return 0;
      case 'set-aside': {
        const delayMs = backoffMs(this.#policy.failedBackoff, Math.max(1, verdict.retryCount), this.#random);
        this.#book.toMarking(item);
        lane.step = 'free';
        lane.failures = 0;
        const { eventId, aggregateVersion: version, topic, revision } = row;
        this.#book.hold(lane, { kind: 'marking', eventId, version, topic, revision }, null);
        this.#book.advance(lane, nowMs);
        return delayMs;
      }
    }
  }

  #free(lane: Lane<Row>, nowMs: number): void {
    lane.step = 'free';
    this.#book.advance(lane, nowMs);
  }

  #rowsPerLane(lanes: readonly Lane<Row>[]): number {
    if (!lanes.some((lane) => lane.deferredBeforeRead && lane.hold === null)) return 1;
    const room = this.#policy.bufferMax - this.#book.rowsInMemory;
    return Math.max(1, Math.min(this.#policy.laneRowsMax, Math.floor(room / lanes.length)));
  }
}

function isReadyFor<Row extends LaneRow>(lane: Lane<Row>, topic: string): boolean {
  return lane.step === 'ready' && lane.queue[0]?.row.topic === topic;
}

function beginRead<Row extends LaneRow>(lane: Lane<Row>): Lane<Row> {
  lane.step = 'reading';
  lane.readFor = lane.queue.at(-1)?.row.aggregateVersion ?? 0;
  lane.deferredBeforeRead = lane.deferred;
  lane.deferred = false;
  return lane;
}
