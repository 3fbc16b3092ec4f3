import { retryDelayMs, sleep, Wakeup, type Clock, type Random } from '@nightporter/protocol';

export interface BackoffLimits {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The wait after the failure numbered `failures` in a row: doubled each time up to the longest, with jitter. */
export function backoffMs(limits: BackoffLimits, failures: number, random: Random): number {
  const delays = { kind: 'exponential', firstMs: limits.firstMs, factor: 2, capMs: limits.maxMs, jitter: 1 } as const;
  return retryDelayMs(delays, failures, random);
}

/**
 * Shared by everything that calls the group's database. `closed`: calls go through. A failure makes it `open`: nobody
 * calls until the pause, longer with each failure in a row, is over; then everybody tries again, and the first success
 * closes it. Failures of calls that began before the pause do not lengthen it.
 */
export class StoreCircuit {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: BackoffLimits;
  readonly #closed = new Wakeup();
  readonly #longOutageMs: number;
  #failures = 0;
  #openUntil = Number.NEGATIVE_INFINITY;
  #failingSince = 0;
  #holdersFirstUntil = Number.NEGATIVE_INFINITY;

  /** `longOutageMs`: claims may have run out in an outage that lasted as long. */
  constructor(options: { clock: Clock; random: Random; limits: BackoffLimits; longOutageMs: number }) {
    this.#clock = options.clock;
    this.#random = options.random;
    this.#limits = options.limits;
    this.#longOutageMs = options.longOutageMs;
  }

  /**
   * How long new claims must wait, in ms. In a long outage the claims of others run out although they are at work: until
   * each of them has surely tried again, they go first, so that waiting for the database costs no attempt.
   */
  get holdersFirstMs(): number {
    const now = this.#clock.now();
    const isLong = this.isOpen && now - this.#failingSince >= this.#longOutageMs;
    // A claim must not be what finds out that a long outage is over.
    if (isLong) return this.#limits.maxMs;
    return Math.max(0, this.#holdersFirstUntil - now);
  }

  get isOpen(): boolean {
    return this.#failures > 0;
  }

  failed(): void {
    const now = this.#clock.now();
    if (now < this.#openUntil) return;
    if (this.#failures === 0) this.#failingSince = now;
    this.#failures += 1;
    this.#openUntil = now + backoffMs(this.#limits, this.#failures, this.#random);
  }

  succeeded(): void {
    if (this.#failures === 0) return;
    const now = this.#clock.now();
    if (now - this.#failingSince >= this.#longOutageMs) this.#holdersFirstUntil = now + 2 * this.#limits.maxMs;
    this.#failures = 0;
    this.#openUntil = Number.NEGATIVE_INFINITY;
    this.#closed.ring();
  }

  /** Resolves when calls may go through: true, or false when the consumer is stopping. */
  async whenClosed(stopping: Wakeup): Promise<boolean> {
    while (this.#clock.now() < this.#openUntil && !stopping.rungForGood) {
      await sleep(this.#clock, this.#openUntil - this.#clock.now(), stopping, this.#closed);
    }
    return !stopping.rungForGood;
  }
}
