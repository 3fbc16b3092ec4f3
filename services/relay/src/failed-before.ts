import type { EventId } from '@nightporter/protocol';

/** Events that are remembered at most; the oldest is forgotten, and its next send then counts as a first one. */
const REMEMBERED_MAX = 10_000;

/** Which events have failed and are not sent yet, to tell retries from first sends. */
export class FailedBefore {
  readonly #failed = new Set<EventId>();

  has(eventId: EventId): boolean {
    return this.#failed.has(eventId);
  }

  add(eventId: EventId): void {
    this.#failed.add(eventId);
    const [oldest] = this.#failed;
    if (this.#failed.size > REMEMBERED_MAX && oldest !== undefined) this.#failed.delete(oldest);
  }

  forget(eventId: EventId): void {
    this.#failed.delete(eventId);
  }
}
