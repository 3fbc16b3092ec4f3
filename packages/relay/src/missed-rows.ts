import type { EventId } from '@nightporter/protocol';

/** Rows that are watched at most; more are not counted. */
const WATCHED_MAX = 10_000;
/** What is found again and again is told of after so many times the grace at the latest. */
const TOGETHER_MAX = 4;

/**
 * Tells rows that the stream skipped from those that are only on their way: a row that a sweep found first counts as
 * missed when a read of the stream, begun `graceMs` later, finds nothing more to bring, and has not brought the row. Rows that were found
 * one soon after the other are told of together, so that one skip is one repair, however fast an idle stream answers.
 */
export class MissedRows {
  readonly #graceMs: number;
  /** When a sweep found each row, oldest first. */
  readonly #found = new Map<EventId, number>();
  #lastFoundAtMs = -Infinity;

  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  foundBySweep(eventId: EventId, nowMs: number): void {
    if (this.#found.size >= WATCHED_MAX || this.#found.has(eventId)) return;
    this.#found.set(eventId, nowMs);
    this.#lastFoundAtMs = nowMs;
  }

  broughtByStream(eventId: EventId): void {
    this.#found.delete(eventId);
  }

  /** The stream had nothing more to bring in a read begun at `readAtMs`. Returns how many rows it has missed. */
  streamIsEmpty(readAtMs: number): number {
    const [firstFoundAtMs = Infinity] = this.#found.values();
    const isAtRest = this.#lastFoundAtMs + this.#graceMs <= readAtMs;
    if (!isAtRest && firstFoundAtMs + TOGETHER_MAX * this.#graceMs > readAtMs) return 0;
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
