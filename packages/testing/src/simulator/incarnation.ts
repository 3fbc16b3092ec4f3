import type { Clock } from '@nightporter/protocol';
import type { Schedule } from './schedule.js';

/**
 * One life of a process. Dead, it gets no answer and no timer ever again, and what it still calls is not heard. Paused, it
 * gets what came meanwhile when it wakes, in any order, while the world has gone on.
 */
export class Incarnation {
  readonly name: string;
  readonly clock: Clock;
  readonly #schedule: Schedule;
  #alive = true;
  #pausedUntilMs = 0;
  #onDeath: () => void = () => undefined;

  /** `clockOffsetMs`: process clocks agree on nothing but the length of a second. */
  constructor(name: string, schedule: Schedule, clockOffsetMs: number) {
    this.name = name;
    this.#schedule = schedule;
    this.clock = {
      now: () => schedule.nowMs + clockOffsetMs,
      after: (delayMs, run) => this.#timer(delayMs, run),
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  get paused(): boolean {
    return this.#pausedUntilMs > this.#schedule.nowMs;
  }

  set onDeath(told: () => void) {
    this.#onDeath = told;
  }

  die(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#onDeath();
  }

  pause(forMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, this.#schedule.nowMs + forMs);
  }

  /** Runs something inside the process: now, or when it wakes, or never. */
  deliver(run: () => void): void {
    if (!this.#alive) return;
    if (this.paused) {
      this.#schedule.after(this.#pausedUntilMs - this.#schedule.nowMs, () => {
        this.deliver(run);
      });
      return;
    }
    run();
  }

  #timer(delayMs: number, run: () => void): () => void {
    let cancelled = false;
    const cancel = this.#schedule.after(delayMs, () => {
      this.deliver(() => {
        if (!cancelled) run();
      });
    });
    return () => {
      cancelled = true;
      cancel();
    };
  }
}
