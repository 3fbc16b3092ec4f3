import type { AggregateVersion } from './ids.js';

/**
 * The last published version of aggregates that are at rest, the most recent ones only. Forgetting is safe: what is not
 * known here is read from the outbox.
 */
export class LaneMemory {
  readonly #max: number;
  readonly #published = new Map<string, AggregateVersion>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#published.size;
  }

  remember(laneKey: string, version: AggregateVersion): void {
    this.#published.delete(laneKey);
    this.#published.set(laneKey, version);
    if (this.#published.size <= this.#max) return;
    for (const oldest of this.#published.keys()) {
      this.#published.delete(oldest);
      return;
    }
  }

  /** Takes what is known of a lane that is no longer at rest. */
  recall(laneKey: string): AggregateVersion | null {
    const version = this.#published.get(laneKey) ?? null;
    this.#published.delete(laneKey);
    return version;
  }

  clear(): void {
    this.#published.clear();
  }
}
