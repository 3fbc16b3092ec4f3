import type { CheckpointSave, MemoryOutbox, StoredRow } from '../memory/index.js';
import { aggregateKey, type AggregateKey, type EventId } from '@nightporter/protocol';
import type { RelayEvent } from '@nightporter/relay';
import { nameOf, type Report } from './assertions.js';

/** The fewest failures of one row in a row after which a simulated relay closes a topic. */
const FAILED_SENDS_MIN = 2;

/** I5: a saved token covers no event that is neither settled nor deferred, and saves never go backwards. */
export class CheckpointWatch {
  slotsByShard: ReadonlyMap<string, ReadonlySet<number>> = new Map();
  readonly #outbox: MemoryOutbox;
  readonly #report: Report;
  readonly #lastSaved = new Map<string, CheckpointSave>();
  /** Rows that the stream skipped without a word; the sweep brings them, whatever the token says. */
  readonly #skipped = new Set<EventId>();
  /** Per aggregate, the lowest version that ever held its lane: what is behind it may be deferred. */
  readonly #heldFrom = new Map<AggregateKey, number>();
  readonly #refusedTopics = new Set<string>();
  #everythingPaused = false;
  /** Sends in a row that failed transiently, by relay, shard and topic: a topic that takes nothing may be closed. */
  readonly #failedSends = new Map<string, number>();
  /** Rows that a relay may have deferred while their topic was closed; a sweep brings them back. */
  readonly #deferrable = new Set<EventId>();
  /** Aggregates whose lane may still be held after their topic has opened: until the sweep that follows reaches them. */
  readonly #lanesHeld = new Set<AggregateKey>();

  constructor(outbox: MemoryOutbox, report: Report) {
    this.#outbox = outbox;
    this.#report = report;
  }

  excuse(eventIds: readonly EventId[]): void {
    for (const eventId of eventIds) this.#skipped.add(eventId);
  }

  topicRefused(topic: string): void {
    this.#refusedTopics.add(topic);
  }

  /** Rows of a paused topic are deferred; null stands for all topics. */
  paused(topic: string | null): void {
    if (topic === null) this.#everythingPaused = true;
    else this.#refusedTopics.add(topic);
  }

  /** Told what a relay tells of its sends. */
  sendEnded(owner: string, event: Extract<RelayEvent, { kind: 'published' | 'send-failed' }>): void {
    const { topic, slot } = event.row;
    const shard = this.#shardOf(slot);
    const key = [owner, shard, topic].join(' ');
    if (event.kind === 'send-failed') {
      if (event.error.failure === 'transient') this.#failedSends.set(key, (this.#failedSends.get(key) ?? 0) + 1);
      return;
    }
    this.#laneMoves(aggregateKey(event.row));
    const wasClosed = (this.#failedSends.get(key) ?? 0) >= FAILED_SENDS_MIN;
    this.#failedSends.delete(key);
    if (!wasClosed) return;
    for (const row of this.#outbox.rows()) {
      if (row.status === 'PUBLISHED' || row.topic !== topic || this.#shardOf(row.slot) !== shard) continue;
      this.#deferrable.add(row.eventId);
      if (row.eventId !== event.row.eventId) this.#lanesHeld.add(row.aggregate);
    }
  }

  /** What came to a lane before it sends again may have been deferred. */
  #laneMoves(aggregate: AggregateKey): void {
    if (!this.#lanesHeld.delete(aggregate)) return;
    for (const row of this.#outbox.rows()) if (row.aggregate === aggregate) this.#deferrable.add(row.eventId);
  }

  rowChanged(_before: StoredRow, after: StoredRow): void {
    if (after.status !== 'FAILED' && after.status !== 'DEAD' && after.status !== 'PROCESSING') return;
    const known = this.#heldFrom.get(after.aggregate) ?? Number.POSITIVE_INFINITY;
    this.#heldFrom.set(after.aggregate, Math.min(known, after.aggregateVersion));
  }

  saved(save: CheckpointSave): void {
    this.#checkMonotone(save);
    this.#lastSaved.set(save.shard, save);
    const slots = this.slotsByShard.get(save.shard);
    for (const { eventId, slot } of this.#outbox.oplog.rowsCoveredBy(save.token)) {
      if (slots?.has(slot) !== true || this.#skipped.has(eventId)) continue;
      const row = this.#outbox.find(eventId);
      if (row === undefined || row.status !== 'PENDING' || this.#mayBeDeferred(row)) continue;
      this.#report(
        'I5 checkpoint',
        `token of ${save.shard} seq ${save.seq} covers ${nameOf(row)}, which is ${row.status}`,
      );
      return;
    }
  }

  #checkMonotone(save: CheckpointSave): void {
    const last = this.#lastSaved.get(save.shard);
    if (last === undefined) return;
    const isLater = save.epoch > last.epoch || (save.epoch === last.epoch && save.seq > last.seq);
    if (!isLater) this.#report('I5 checkpoint', `save (${save.epoch}, ${save.seq}) after (${last.epoch}, ${last.seq})`);
    const [before, after] = [last.token, save.token].map((token) => this.#outbox.oplog.positionOf(token) ?? 0);
    if ((after ?? 0) < (before ?? 0)) {
      this.#report('I5 checkpoint', `token of ${save.shard} went back from ${String(before)} to ${String(after)}`);
    }
  }

  #mayBeDeferred(row: StoredRow): boolean {
    const heldFrom = this.#heldFrom.get(row.aggregate) ?? Number.POSITIVE_INFINITY;
    if (this.#everythingPaused || row.aggregateVersion >= heldFrom || this.#refusedTopics.has(row.topic)) return true;
    if (this.#deferrable.has(row.eventId) || this.#lanesHeld.has(row.aggregate)) return true;
    const place = [' ', this.#shardOf(row.slot), ' ', row.topic].join('');
    return [...this.#failedSends].some(([key, count]) => count >= FAILED_SENDS_MIN && key.endsWith(place));
  }

  #shardOf(slot: number): string {
    for (const [shard, slots] of this.slotsByShard) if (slots.has(slot)) return shard;
    return 'none';
  }
}
