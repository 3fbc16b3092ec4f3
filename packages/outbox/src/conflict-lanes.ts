import { Wakeup, sleep, type Clock } from '@nightporter/protocol';

/** Nobody waits longer for his turn: a transaction that runs another one inside its work must not wait for itself. */
const TURN_MS_MAX = 10_000;

/**
 * Turns for transactions of this process that have lost a conflict. Without them, all losers try again at once, and all but one
 * lose again; with them, they come one after another, first come first served, for each thing that they fight over. It only saves work: what
 * decides is the database.
 */
export class ConflictLanes {
  readonly #clock: Clock;
  /** By lane: resolves once everybody who has entered so far has left. */
  readonly #tails = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves at the caller's turn, or when `patienceMs` is over. The returned function ends the turn; call it in any case. */
  async enter(lane: string, patienceMs: number): Promise<() => void> {
    const before = this.#tails.get(lane);
    let leave = (): void => undefined;
    const stay = new Promise<void>((resolve) => {
      leave = resolve;
    });
    const tail = (before ?? Promise.resolve()).then(() => stay);
    this.#tails.set(lane, tail);
    if (before !== undefined) {
      const turn = new Wakeup();
      void before.then(() => {
        turn.ringForGood();
      });
      await sleep(this.#clock, Math.min(patienceMs, TURN_MS_MAX), turn);
    }
    return () => {
      leave();
      if (this.#tails.get(lane) === tail) this.#tails.delete(lane);
    };
  }

  /** Lanes with somebody in them. */
  get size(): number {
    return this.#tails.size;
  }
}
