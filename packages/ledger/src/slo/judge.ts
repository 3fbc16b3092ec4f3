/**
 * Whether a group keeps its service level: of the events that it settled in a window, 99.5 % were settled within a threshold of their commit.
 *
 * Burn rate is the share of late events as a multiple of the share that is allowed: at 1 nothing of the budget is left at the end of its
 * period. The windows and factors are those of docker/prometheus/rules/slo.yaml, and a test holds them to it, so that a terminal and an
 * alarm say the same.
 */

export const SLO_OBJECTIVE = 0.995;
/** What may be late, written out, since 1 - 0.995 is not 0.005 in binary. */
const ALLOWED_LATE = 0.005;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export const SLO_WINDOWS = [
  { name: '5m', lengthMs: 5 * MINUTE_MS },
  { name: '30m', lengthMs: 30 * MINUTE_MS },
  { name: '1h', lengthMs: HOUR_MS },
  { name: '6h', lengthMs: 6 * HOUR_MS },
  { name: '24h', lengthMs: 24 * HOUR_MS },
  { name: '3d', lengthMs: 72 * HOUR_MS },
] as const;

export type SloWindowName = (typeof SLO_WINDOWS)[number]['name'];

/** The long window says that it matters, the short one that it still goes on. */
export const SLO_BURNS = [
  { kind: 'page', long: '1h', short: '5m', factor: 14.4 },
  { kind: 'page', long: '6h', short: '30m', factor: 6 },
  { kind: 'ticket', long: '3d', short: '6h', factor: 1 },
] as const satisfies readonly { kind: string; long: SloWindowName; short: SloWindowName; factor: number }[];

/** A settled event: when, and how long after its commit; null where its row was not found. */
export interface SettledEvent {
  readonly processedAtMs: number;
  readonly latencyMs: number | null;
}

/** What was settled in one window. Figures that nothing was settled for are null. */
export interface SloWindow {
  readonly window: SloWindowName;
  readonly settled: number;
  /** Those that took no longer than the threshold. */
  readonly within: number;
  readonly share: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  /** Part of what may be late in this window that is left; negative when more was late. */
  readonly budgetLeft: number | null;
  readonly burnRate: number | null;
  /** Settled in the window too, but when they were committed could not be found out; they are in no other figure. */
  readonly notKnown: number;
  /** Whether all of the window was read; else the figures are those of its later part. */
  readonly isWhole: boolean;
}

export type SloVerdict =
  | {
      readonly kind: 'page' | 'ticket';
      readonly long: SloWindowName;
      readonly short: SloWindowName;
      /** The burn rate that both windows are above. */
      readonly factor: number;
    }
  | { readonly kind: 'ok' }
  /** In no window: nothing can be said. */
  | { readonly kind: 'nothing-settled' };

export interface SloQuestion {
  readonly nowMs: number;
  /** From when on the events are complete. */
  readonly completeFromMs: number;
  readonly thresholdMs: number;
}

/** Figures of every window, shortest first. */
export function windowsOf(
  events: readonly SettledEvent[],
  { completeFromMs, nowMs, thresholdMs }: SloQuestion,
): readonly SloWindow[] {
  return SLO_WINDOWS.map(({ lengthMs, name }) => {
    const fromMs = nowMs - lengthMs;
    const inside = events.filter(({ processedAtMs }) => processedAtMs >= Math.max(fromMs, completeFromMs));
    const latenciesMs = inside.flatMap(({ latencyMs }) => (latencyMs === null ? [] : [latencyMs]));
    const notKnown = inside.length - latenciesMs.length;
    return { window: name, ...figuresOf(latenciesMs, thresholdMs), notKnown, isWhole: completeFromMs <= fromMs };
  });
}

function figuresOf(
  latenciesMs: readonly number[],
  thresholdMs: number,
): Omit<SloWindow, 'window' | 'notKnown' | 'isWhole'> {
  const settled = latenciesMs.length;
  const within = latenciesMs.filter((latencyMs) => latencyMs <= thresholdMs).length;
  if (settled === 0)
    return { settled, within, share: null, p50Ms: null, p99Ms: null, budgetLeft: null, burnRate: null };
  const rising = latenciesMs.toSorted((left, right) => left - right);
  const burnRate = (settled - within) / settled / ALLOWED_LATE;
  return {
    settled,
    within,
    share: within / settled,
    p50Ms: percentile(rising, 0.5),
    p99Ms: percentile(rising, 0.99),
    budgetLeft: 1 - burnRate,
    burnRate,
  };
}

/** The value that so large a part is at or below, one of those that were measured. */
function percentile(rising: readonly number[], part: number): number {
  return rising[Math.max(0, Math.ceil(rising.length * part) - 1)] ?? 0;
}

/** What the windows call for: the most urgent burn whose long and short window are both above its factor. */
export function judgeWindows(windows: readonly SloWindow[]): SloVerdict {
  if (windows.every(({ settled }) => settled === 0)) return { kind: 'nothing-settled' };
  const burnRates = new Map(windows.map(({ burnRate, window }) => [window, burnRate ?? 0]));
  const isAbove = (window: SloWindowName, factor: number): boolean => (burnRates.get(window) ?? 0) > factor;
  return SLO_BURNS.find(({ factor, long, short }) => isAbove(long, factor) && isAbove(short, factor)) ?? { kind: 'ok' };
}
