import { Wakeup, sleep, type Clock } from '@nightporter/protocol';

/** Commits after which one more transaction may run at once. */
const COMMITS_PER_STEP = 8;

/** How a transaction ended; `conflicted`: it lost to a concurrent one. */
export type TurnEnding = 'committed' | 'conflicted' | 'otherwise';

interface Waiting {
  readonly bell: Wakeup;
  isAdmitted: boolean;
}

/**
 * How many transactions of this process run at once. As many as come, until they conflict: batches that write the same documents abort one another
 * again and again, the more of them the more often, and each try costs all of its statements. A conflict halves the number, commits raise it step by step
 * (additive increase, multiplicative decrease: Chiu and Jain, 1989), so that under contention they run one by one, and a while later side by side again.
 *
 * A courtesy, not a lock: who has waited long enough goes anyway. Nothing relies on a turn but speed.
 */
export class Turns {
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #running = 0;
  #limit = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Transactions that may run at once; infinite where none has conflicted. */
  get limit(): number {
    return Math.floor(this.#limit);
  }

  /** Resolves when a transaction may begin, in the order of the calls, or after `longestMs`, or at the ring of `hurry`; `end` must follow. */
  async begin({ longestMs, hurry }: { longestMs: number; hurry: Wakeup }): Promise<void> {
    if (this.#running < this.limit && this.#waiting.length === 0) {
      this.#running += 1;
      return;
    }
    const waiting: Waiting = { bell: new Wakeup(), isAdmitted: false };
    this.#waiting.push(waiting);
    await sleep(this.#clock, longestMs, waiting.bell, hurry);
    if (waiting.isAdmitted) return;
    this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    this.#running += 1;
  }

  /** Runs what has begun, and ends its turn whatever comes of it: one that stayed taken would slow everybody down for good. */
  async during<Result>(run: () => Promise<Result>, endingOf: (result: Result) => TurnEnding): Promise<Result> {
    let ending: TurnEnding = 'otherwise';
    try {
      const result = await run();
      ending = endingOf(result);
      return result;
    } finally {
      this.end(ending);
    }
  }

  end(how: TurnEnding): void {
    if (how === 'conflicted') this.#limit = Math.max(1, Math.min(this.#limit, this.#running) / 2);
    if (how === 'committed') this.#limit += 1 / COMMITS_PER_STEP;
    this.#running -= 1;
    while (this.#running < this.limit) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#running += 1;
      next.isAdmitted = true;
      next.bell.ring();
    }
  }
}
