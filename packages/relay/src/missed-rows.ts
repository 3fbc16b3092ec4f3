import type { EventId } from '@nightporter/protocol';

/** Rows that are watched at most; more are not counted. */
const WATCHED_MAX = 10_000;

/**
 * Tells rows that the stream skipped from those that are only on their way: a row that a sweep found first counts as
 * missed when a read of the stream, begun `graceMs` later, finds nothing more to bring, and has not brought the row.
 */
export class MissedRows {
  readonly #graceMs: number;
  /** When a sweep found each row, oldest first. */
  readonly #found = new Map<EventId, number>();

  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  foundBySweep(eventId: EventId, nowMs: number): void {
    if (this.#found.size < WATCHED_MAX && !this.#found.has(eventId)) this.#found.set(eventId, nowMs);
  }

  broughtByStream(eventId: EventId): void {
    this.#found.delete(eventId);
  }

  /** The stream had nothing more to bring in a read begun at `readAtMs`. Returns how many rows it has missed. */
  streamIsEmpty(readAtMs: number): number {
    let missed = 0;
    for (const [eventId, foundAtMs] of this.#found) {
      if (foundAtMs + this.#graceMs > readAtMs) break;
      this.#found.delete(eventId);
      missed += 1;
    }
    return missed;
  }

  /** A fresh stream brings none of them. */
  clear(): void {
    this.#found.clear();
  }
}
