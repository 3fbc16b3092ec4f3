/** Long enough for a steady figure, short enough to see a standstill. */
export const RATE_WINDOW_S = 10;

/** Events counted by the second in which they happened. */
export type CountsBySecond = ReadonlyMap<number, number>;

/**
 * Events a second over the last whole {@link RATE_WINDOW_S} seconds, or over those that there have been since `sinceMs`. The second
 * that is not over is left out: it would make a steady rate look lower than it is.
 */
export function ratePerSecond(
  counts: CountsBySecond,
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): number {
  const end = Math.floor(nowMs / 1_000);
  const seconds = Math.min(RATE_WINDOW_S, end - Math.floor(sinceMs / 1_000));
  if (seconds < 1) return 0;
  let events = 0;
  for (const [second, count] of counts) if (second >= end - seconds && second < end) events += count;
  return events / seconds;
}

/** Counts events for {@link ratePerSecond}; remembers no more seconds than it needs. */
export class PublishRate {
  readonly #counts = new Map<number, number>();
  #sinceMs: number | null = null;

  add(nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const second = Math.floor(nowMs / 1_000);
    this.#counts.set(second, (this.#counts.get(second) ?? 0) + 1);
    for (const known of this.#counts.keys()) if (known < second - RATE_WINDOW_S) this.#counts.delete(known);
  }

  perSecond(nowMs: number): number {
    return this.#sinceMs === null ? 0 : ratePerSecond(this.#counts, { sinceMs: this.#sinceMs, nowMs });
  }
}
