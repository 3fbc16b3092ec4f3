/** Only tests use this: a small outbox, its stream, a broker, and the lanes between them. It checks the promises as it goes. */
import { expect } from 'vitest';
import type { LaneItem, LaneRow } from './lane.js';
import { notShown } from './lane-refresh.js';
import { PublishLanes, type MarkResult } from './publish-lanes.js';
import { TEST_POLICY, testRow } from './publish-lanes.support.js';

type Item = LaneItem<LaneRow>;
type Stored = { -readonly [Name in keyof LaneRow]: LaneRow[Name] } & { dueAtMs: number };
type Mark =
  | { readonly kind: 'published'; readonly item: Item }
  | { readonly kind: 'failed'; readonly item: Item; status: 'FAILED' | 'DEAD'; retryCount: number; retryInMs: number }
  | { readonly kind: 'unanswered'; readonly item: Item };
interface Delivered {
  readonly eventId: string;
  settled: boolean;
}

export const AGGREGATES = ['a', 'b', 'c'];
const SWEPT_PAGE = 2;

export class World {
  nowMs = 0;
  readonly rows = new Map<string, Stored>();
  readonly landed = new Set<string>();
  /** Deleted by a stray hand and refused by the broker: nothing can be done. */
  readonly givenUp = new Set<string>();
  readonly undelivered: string[] = [];
  readonly deliveries: Delivered[] = [];
  readonly sending = new Set<Item>();
  readonly marks: Mark[] = [];
  /** Sightings that were read and are still on their way. */
  readonly onTheirWay: { row: LaneRow; inOutbox: boolean; lowest: boolean; delivery: Delivered | null }[] = [];
  readonly versions = new Map<string, number>();
  /** Rows of which the outbox should know that an original may have landed. */
  readonly unanswered = new Set<string>();
  readonly lanes: PublishLanes<LaneRow>;

  constructor(windowMax: number, bufferMax: number, held: number) {
    const limits = { windowMax, bufferMax, heldLanesMax: held, rememberedLanesMax: held, laneRowsMax: 2 };
    this.lanes = new PublishLanes({ ...TEST_POLICY, ...limits }, () => 0.5);
  }

  commit(aggregateId: string): void {
    const version = (this.versions.get(aggregateId) ?? 0) + 1;
    this.versions.set(aggregateId, version);
    const topic = aggregateId === 'c' ? 'other-events' : 'orders-events';
    const row = { ...testRow(aggregateId, version, { topic }), dueAtMs: 0 };
    this.rows.set(row.eventId, row);
    this.undelivered.push(row.eventId);
  }

  view({ dueAtMs, ...row }: Stored): LaneRow {
    return { ...row, dueInMs: Math.max(0, dueAtMs - this.nowMs) };
  }

  unsettled(aggregateId: string): Stored[] {
    const rows = [...this.rows.values()].filter((row) => row.aggregateId === aggregateId && row.status !== 'PUBLISHED');
    return rows.sort((one, other) => one.aggregateVersion - other.aggregateVersion);
  }

  /** What a stream does with its next row: look it up. The sighting reaches the lanes now or later. */
  lookUpNext(copies: ReadonlyMap<string, LaneRow>): void {
    const eventId = this.undelivered.shift();
    if (eventId === undefined) return;
    const stored = this.rows.get(eventId);
    const delivery = { eventId, settled: false };
    this.deliveries.push(delivery);
    const row = stored === undefined ? copies.get(eventId) : this.view(stored);
    if (row !== undefined) this.onTheirWay.push({ row, inOutbox: stored !== undefined, lowest: false, delivery });
  }

  sweepRead(aggregateId: string): void {
    this.unsettled(aggregateId)
      .slice(0, SWEPT_PAGE)
      .forEach((row, index) => {
        this.onTheirWay.push({ row: this.view(row), inOutbox: true, lowest: index === 0, delivery: null });
      });
  }

  arrive(): void {
    const sighting = this.onTheirWay.shift();
    if (sighting === undefined) return;
    const { delivery } = sighting;
    const settle = (): void => {
      if (delivery !== null) this.settle(delivery);
    };
    const inherited = false;
    this.lanes.offer({ ...sighting, delivery: { settle }, inherited, sightedAtMs: this.nowMs }, this.nowMs);
  }

  /** I5: what counts as settled is settled, or unsettled in the outbox where every owner can find it. */
  settle(delivery: Delivered): void {
    const { eventId } = delivery;
    const isSafe = this.rows.has(eventId) || this.landed.has(eventId) || this.givenUp.has(eventId);
    expect(isSafe, `${eventId} is settled, and nowhere`).toBe(true);
    delivery.settled = true;
  }

  send(): void {
    const item = this.lanes.nextSend(this.nowMs);
    if (item === null) return;
    for (const other of this.sending) expect(other.lane, 'one send per lane').not.toBe(item.lane);
    this.sending.add(item);
  }

  land(item: Item): void {
    const { aggregateId, aggregateVersion, eventId } = item.row;
    if (!this.landed.has(eventId) && aggregateVersion > 1) {
      const predecessor = `${aggregateId}/${aggregateVersion - 1}`;
      expect(this.landed.has(predecessor) || !this.rows.has(predecessor), `I4: ${eventId} landed first`).toBe(true);
    }
    this.landed.add(eventId);
  }

  answer(outcome: 'sent' | 'transient' | 'landed unanswered' | 'topic' | 'permanent'): void {
    const [item] = this.sending;
    if (item === undefined) return;
    this.sending.delete(item);
    if (outcome === 'sent' || outcome === 'landed unanswered') this.land(item);
    if (outcome === 'sent') {
      this.lanes.sent(item, this.nowMs);
      this.marks.push({ kind: 'published', item });
      return;
    }
    const isUnanswered = outcome === 'landed unanswered';
    if (isUnanswered && item.row.form === 'original') this.unanswered.add(item.row.eventId);
    const failure = isUnanswered ? 'transient' : outcome;
    const verdict = this.lanes.failed(item, { failure, answered: !isUnanswered }, this.nowMs);
    if (verdict.kind === 'set-aside') this.marks.push({ ...verdict, kind: 'failed', item });
    this.collectRecords();
  }

  collectRecords(): void {
    for (let item = this.lanes.nextToRecord(); item !== null; item = this.lanes.nextToRecord()) {
      this.marks.push({ kind: 'unanswered', item });
    }
  }

  writeMark(): void {
    const mark = this.marks.shift();
    if (mark === undefined) return;
    const result = this.apply(mark);
    if (mark.kind === 'published') this.lanes.markedPublished(mark.item, result, this.nowMs);
    else if (mark.kind === 'unanswered') this.lanes.recorded(mark.item, result, this.nowMs);
    else this.lanes.markedFailed(mark.item, { result, status: mark.status, retryInMs: mark.retryInMs }, this.nowMs);
    this.collectRecords();
  }

  apply(mark: Mark): MarkResult {
    const stored = this.rows.get(mark.item.row.eventId);
    if (stored === undefined) {
      if (mark.kind === 'failed') this.givenUp.add(mark.item.row.eventId);
      return 'missing';
    }
    if (mark.kind === 'published') {
      stored.status = 'PUBLISHED';
      stored.revision += 1;
      const mayDiffer = mark.item.row.form === 'tombstone' && this.unanswered.has(stored.eventId);
      if (mayDiffer) expect(stored.unanswered, `${stored.eventId} skipped`).toBe(true);
      return 'done';
    }
    if (stored.status === 'PUBLISHED' || stored.revision !== mark.item.row.revision) return 'refused';
    stored.revision += 1;
    if (mark.kind === 'unanswered') {
      stored.unanswered = true;
      return 'done';
    }
    stored.status = mark.status;
    stored.retryCount = mark.retryCount;
    stored.dueAtMs = this.nowMs + mark.retryInMs;
    if (this.unanswered.has(stored.eventId)) expect(stored.unanswered, `${stored.eventId} set aside`).toBe(true);
    return 'done';
  }

  read(): void {
    const { lanes, limit } = this.lanes.nextReads(2);
    for (const lane of lanes) {
      const aggregateId = AGGREGATES.find((id) => lane.key.endsWith(`/${id}`)) ?? '';
      const rows = this.unsettled(aggregateId)
        .slice(0, limit)
        .map((row) => this.view(row));
      const lookedUp = new Map(
        notShown(lane, rows, limit).map(({ row }) => {
          const stored = this.rows.get(row.eventId);
          return [row.eventId, stored === undefined ? ('missing' as const) : this.view(stored)];
        }),
      );
      this.lanes.refresh(lane, { rows, limit, lookedUp }, this.nowMs);
      this.collectRecords();
    }
  }

  pass(delayMs: number): void {
    this.nowMs += delayMs;
    this.lanes.wake(this.nowMs);
    this.collectRecords();
  }

  operate(form: 'original' | 'tombstone'): void {
    const dead = [...this.rows.values()].find((row) => row.status === 'DEAD');
    if (dead === undefined) return;
    Object.assign(dead, { status: 'PENDING', retryCount: 0, revision: dead.revision + 1, form });
  }

  /** A mark of an earlier owner that lands late. */
  foreignMark(aggregateId: string, status: 'FAILED' | 'DEAD'): void {
    const [row] = this.unsettled(aggregateId);
    if (row === undefined || row.status === 'DEAD') return;
    Object.assign(row, { status, revision: row.revision + 1, dueAtMs: this.nowMs + 1_000 });
  }

  /** A stray hand: only rows that the stream has not brought yet still have their copy. */
  deleteRow(): void {
    const eventId = this.undelivered.at(-1);
    if (eventId !== undefined) {
      this.rows.delete(eventId);
    }
  }
}
