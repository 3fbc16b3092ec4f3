import { Wakeup, sleep, type Clock } from '@nightporter/protocol';
import type { OutboxFigures, OutboxStats } from './ports.js';
import type { RelayObserver } from './relay-events.js';
import { isOutage, limited, storeUnavailable } from './waiting.js';

/** What the figures cost may take no more than this share of the time. */
const COST_SHARE = 1 / 20;

export interface StatsWatchDetails {
  readonly stats: OutboxStats;
  readonly clock: Clock;
  readonly observe: RelayObserver;
  readonly everyMs: number;
  readonly callMs: number;
  /** False while others do this work: they tell the figures. */
  readonly isWanted: () => boolean;
}

/** Reads the outbox's figures now and then, beside the work: nothing waits for them, and a database that is slow is asked less often. */
export class StatsWatch {
  readonly #details: StatsWatchDetails;
  readonly #stop = new Wakeup();
  #latest: { readonly figures: OutboxFigures; readonly atMs: number } | null = null;

  constructor(details: StatsWatchDetails) {
    this.#details = details;
  }

  /** Those that were read last, and how old they are; null before the first, and while others do the work. */
  get latest(): (OutboxFigures & { readonly ageMs: number }) | null {
    if (this.#latest === null || !this.#details.isWanted()) return null;
    const { figures, atMs } = this.#latest;
    return { ...figures, ageMs: this.#details.clock.now() - atMs };
  }

  stop(): void {
    this.#stop.ringForGood();
  }

  /** Resolves once stopped. */
  async run(): Promise<void> {
    const { clock, everyMs, isWanted } = this.#details;
    while (!this.#stop.rungForGood) {
      const beganAtMs = clock.now();
      if (isWanted()) await this.#read();
      else this.#latest = null;
      const costMs = clock.now() - beganAtMs;
      await sleep(clock, Math.max(everyMs, costMs / COST_SHARE), this.#stop);
    }
  }

  async #read(): Promise<void> {
    const { stats, clock, observe, callMs } = this.#details;
    const limit = { clock, limitMs: callMs, over: this.#stop, onLimit: storeUnavailable };
    try {
      const figures = await limited(() => stats.read(), limit);
      this.#latest = { figures, atMs: clock.now() };
    } catch (error) {
      if (this.#stop.rungForGood) return;
      if (!isOutage(error)) throw error;
      observe({ kind: 'database-unavailable', operation: 'stats.read', error });
    }
  }
}
