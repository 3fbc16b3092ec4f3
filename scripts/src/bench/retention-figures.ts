import type { WriteSample } from './write-load.js';

/** A stretch of time in which either the writers were alone, or retention ran beside them. */
export interface Window {
  readonly kind: 'alone' | 'beside';
  readonly startedMs: number;
  readonly endedMs: number;
}

export interface WriteFigures {
  readonly writes: number;
  readonly writesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The writes of some windows: those that ended in one of them, with all of their time. */
export function writeFigures(
  measured: readonly { readonly window: Window; readonly samples: readonly WriteSample[] }[],
): WriteFigures {
  const durationsMs: number[] = [];
  let windowsMs = 0;
  for (const { window, samples } of measured) {
    windowsMs += window.endedMs - window.startedMs;
    for (const { startedMs, endedMs } of samples) {
      if (endedMs >= window.startedMs && endedMs < window.endedMs) durationsMs.push(endedMs - startedMs);
    }
  }
  durationsMs.sort((left, right) => left - right);
  return {
    writes: durationsMs.length,
    writesPerSecond: rounded((durationsMs.length * 1_000) / windowsMs),
    p50Ms: rounded(percentile(durationsMs, 0.5)),
    p99Ms: rounded(percentile(durationsMs, 0.99)),
  };
}

/** How many times as long, and as many: beside retention, to alone. */
export function ratiosOf({ alone, beside }: { readonly alone: WriteFigures; readonly beside: WriteFigures }): {
  readonly writesPerSecond: number;
  readonly p50: number;
  readonly p99: number;
} {
  return {
    writesPerSecond: rounded(beside.writesPerSecond / alone.writesPerSecond),
    p50: rounded(beside.p50Ms / alone.p50Ms),
    p99: rounded(beside.p99Ms / alone.p99Ms),
  };
}

function percentile(sorted: readonly number[], share: number): number {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  if (value === undefined) throw new Error('Nothing was written while it was measured: give it more rows or seconds.');
  return value;
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
