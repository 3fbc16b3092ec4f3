import type { Random } from './clock.js';

export interface Backoff {
  /** Delay after the first failure; doubles with each further one. */
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * The wait after `failures` failures in a row (1, 2, 3 …), in whole milliseconds: between half of the doubled delay and
 * all of it, at the ceiling too, so that many who failed together do not come back together.
 */
export function backoffMs(backoff: Backoff, failures: number, random: Random): number {
  const doublings = Math.min(Math.max(0, failures - 1), 40);
  const fullMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** doublings);
  return Math.ceil((fullMs / 2) * (1 + random()));
}
