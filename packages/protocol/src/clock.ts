/**
 * Time as a parameter. `now` is monotonic and means nothing outside this process; leases, retries and every stored date
 * use the database's clock instead.
 */
export interface Clock {
  /** Milliseconds since some fixed moment of this process. */
  now(): number;
  /** Runs `run` once after `delayMs`; the returned function cancels it. */
  after(delayMs: number, run: () => void): () => void;
}

/** Uniform in [0, 1). */
export type Random = () => number;

/** Resolves after `delayMs`, or earlier when one of `wakeups` rings. Leaves no timer behind. */
export async function sleep(clock: Clock, delayMs: number, ...wakeups: readonly Wakeup[]): Promise<void> {
  await new Promise<void>((resolve) => {
    const detach: (() => void)[] = [];
    const finish = (): void => {
      for (const undo of detach) undo();
      resolve();
    };
    detach.push(clock.after(delayMs, finish));
    for (const wakeup of wakeups) detach.push(wakeup.onceRung(finish));
  });
}

/** A bell: whoever waits for it continues once it has been rung. A ring that nobody waits for is not remembered, unless it is final. */
export class Wakeup {
  #waiting = new Set<() => void>();
  #final = false;

  /** Wakes everybody who waits now. */
  ring(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Rings for ever: later waits return at once. */
  ringForGood(): void {
    this.#final = true;
    this.ring();
  }

  get rungForGood(): boolean {
    return this.#final;
  }

  /** Calls `wake` at the next ring; the returned function takes that back. */
  onceRung(wake: () => void): () => void {
    if (this.#final) {
      wake();
      return () => undefined;
    }
    this.#waiting.add(wake);
    return () => this.#waiting.delete(wake);
  }

  /** Resolves at the next ring. */
  async wait(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.onceRung(resolve);
    });
  }
}
