import type { Random } from '@nightporter/protocol';

interface Entry {
  readonly atMs: number;
  /** Decides between entries of one moment. */
  readonly tie: number;
  readonly run: () => void;
  cancelled: boolean;
}

/** Steps between two hops through the event loop, so that timers and signals of the real process are not starved. */
const STEPS_PER_HOP = 5_000;

/**
 * Virtual time. Entries run one after another in the order of their time, those of one moment in a seeded order; after each,
 * every promise that can settle does so before the next one runs.
 */
export class Schedule {
  readonly #random: Random;
  readonly #heap: Entry[] = [];
  #nowMs = 0;
  #steps = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Runs `run` after a delay; the returned function takes that back. */
  after(delayMs: number, run: () => void): () => void {
    const entry = { atMs: this.#nowMs + Math.max(0, delayMs), tie: this.#random(), run, cancelled: false };
    this.#push(entry);
    return () => {
      entry.cancelled = true;
    };
  }

  /** Lets time go on to `untilMs`. Rejects with what an entry threw. */
  runUntil(untilMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = (): void => {
        const entry = this.#take(untilMs);
        if (entry === undefined) {
          this.#nowMs = Math.max(this.#nowMs, untilMs);
          resolve();
          return;
        }
        this.#nowMs = entry.atMs;
        this.#steps += 1;
        try {
          entry.run();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        afterMicrotasks(step, this.#steps % STEPS_PER_HOP === 0);
      };
      afterMicrotasks(step, false);
    });
  }

  #take(untilMs: number): Entry | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.atMs > untilMs) return undefined;
      this.#pop();
      if (!first.cancelled) return first;
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    heap.push(entry);
    let index = heap.length - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let index = 0; ;) {
      const left = 2 * index + 1;
      const right = left + 1;
      const child = right < heap.length && isBefore(heap[right], heap[left]) ? right : left;
      if (child >= heap.length || !this.#swapIfBefore(child, index)) return;
      index = child;
    }
  }

  /** Brings the entry at `lower` up to `upper` when it is to run earlier. */
  #swapIfBefore(lower: number, upper: number): boolean {
    const low = this.#heap[lower];
    const up = this.#heap[upper];
    if (low === undefined || up === undefined || !isBefore(low, up)) return false;
    this.#heap[lower] = up;
    this.#heap[upper] = low;
    return true;
  }
}

function isBefore(left: Entry | undefined, right: Entry | undefined): boolean {
  if (left === undefined || right === undefined) return false;
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.tie < right.tie);
}

/**
 * A tick that is queued from a microtask runs once the queue of microtasks is empty: all that the last step set off has come
 * to rest then. It is a third of the price of a hop through the event loop.
 */
function afterMicrotasks(run: () => void, throughEventLoop: boolean): void {
  if (throughEventLoop) setImmediate(run);
  else
    queueMicrotask(() => {
      process.nextTick(run);
    });
}
