export interface RateLimit {
  readonly perSecond: number;
  /** How many may go at once after a rest. */
  readonly burst: number;
}

/**
 * A rate limit: a token is taken for each thing that is done, and tokens come back evenly. In any `t` seconds at most
 * `burst + t · perSecond` are taken.
 */
export class TokenBucket {
  readonly #limit: RateLimit;
  #tokens: number;
  /** Up to when tokens have come back. Null until the first question. */
  #filledAtMs: number | null = null;

  constructor(limit: RateLimit) {
    this.#limit = limit;
    this.#tokens = limit.burst;
  }

  /** Milliseconds until a token is there, rounded up; 0 when one is. */
  waitMs(nowMs: number): number {
    this.#fill(nowMs);
    if (this.#tokens >= 1) return 0;
    return Math.max(1, Math.ceil(((1 - this.#tokens) * 1_000) / this.#limit.perSecond));
  }

  /** Takes a token that {@link waitMs} has said is there. */
  take(): void {
    this.#tokens -= 1;
  }

  #fill(nowMs: number): void {
    const sinceMs = this.#filledAtMs === null ? 0 : Math.max(0, nowMs - this.#filledAtMs);
    this.#filledAtMs = nowMs;
    this.#tokens = Math.min(this.#limit.burst, this.#tokens + (sinceMs * this.#limit.perSecond) / 1_000);
  }
}

/** The limit of a steady stream: a tenth of a second's worth may go at once. */
export function steadyRate(perSecond: number): RateLimit {
  return { perSecond, burst: Math.max(1, perSecond / 10) };
}
