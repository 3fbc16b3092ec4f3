import type { Random } from './clock.js';

/** Grows from `firstMs` by `factor` up to `capMs`; up to `jitter` (0 … 1) of the delay is added on top, so a delay is never shorter than its base. */
export interface ExponentialDelays {
  readonly kind: 'exponential';
  readonly firstMs: number;
  readonly factor: number;
  readonly capMs: number;
  readonly jitter: number;
}

/** One delay after each failed attempt; the last one repeats. */
export interface ScheduledDelays {
  readonly kind: 'schedule';
  readonly delaysMs: readonly number[];
}

export type RetryDelays = ScheduledDelays | ExponentialDelays;

export interface RetryPolicy {
  readonly delays: RetryDelays;
  /** The event becomes a dead letter when this many attempts have failed. */
  readonly attemptsMax: number;
}

export type RetryDecision = { readonly kind: 'retry'; readonly delayMs: number } | { readonly kind: 'dead' };

/** What follows when the attempt numbered `attempts` (1, 2, 3 …) has failed. */
export function decideRetry(policy: RetryPolicy, attempts: number, random: Random): RetryDecision {
  if (attempts >= policy.attemptsMax) return { kind: 'dead' };
  return { kind: 'retry', delayMs: retryDelayMs(policy.delays, attempts, random) };
}

/** The wait after the attempt numbered `attempts`, in whole milliseconds, rounded up. */
export function retryDelayMs(delays: RetryDelays, attempts: number, random: Random): number {
  const index = Math.max(0, attempts - 1);
  switch (delays.kind) {
    case 'schedule':
      return delays.delaysMs[Math.min(index, delays.delaysMs.length - 1)] ?? 0;
    case 'exponential': {
      const baseMs = Math.min(delays.capMs, delays.firstMs * delays.factor ** index);
      return Math.ceil(Math.min(delays.capMs, baseMs * (1 + delays.jitter * random())));
    }
  }
}
