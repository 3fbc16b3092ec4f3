import type { CheckpointSave, MemoryOutbox, StoredRow } from '../memory/index.js';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import { nameOf, type Report } from './assertions.js';

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
    return this.#everythingPaused || row.aggregateVersion >= heldFrom || this.#refusedTopics.has(row.topic);
  }
}
