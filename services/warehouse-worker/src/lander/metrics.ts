import type { Recorder } from '@nightporter/runtime';
import { TABLE_NAMES } from '../domain/tables.js';
import type { LANDER_METRICS } from '../metrics-table.js';
import type { StagedFigures } from '../store/warehouse-store.js';
import type { Landed } from './session.js';

export type LanderMetrics = Recorder<typeof LANDER_METRICS>;

export interface LanderSnapshot {
  readonly state: 'standing-by' | 'landing' | 'stopped';
  readonly files?: number;
  readonly merges: number;
  readonly mergedFiles: number;
  readonly removedFiles: number;
  readonly failures: number;
}

export interface LanderFigures {
  readonly snapshot: () => LanderSnapshot;
  readonly staged: () => Promise<StagedFigures>;
}

/** Shows zeros, since an alarm on a rise does not see the first of a series, and looks at what is staged at each scrape. */
export function tellLander(metrics: LanderMetrics, { snapshot, staged }: LanderFigures): void {
  for (const table of TABLE_NAMES) {
    metrics.count('rows', { table }, 0);
    metrics.count('filesLanded', { table }, 0);
  }
  metrics.beforeScrape(() => {
    const { state, files = null, ...counts } = snapshot();
    metrics.set('landing', {}, state === 'landing' ? 1 : 0);
    metrics.set('files', {}, files);
    for (const key of ['merges', 'mergedFiles', 'removedFiles', 'failures'] as const)
      metrics.countTo(key, {}, counts[key]);
  });
  metrics.beforeScrape(async () => {
    // Gone until they are known: a database that is away must not leave the last figures standing.
    setStaged(metrics, null);
    setStaged(metrics, await staged());
  });
}

function setStaged(metrics: LanderMetrics, figures: StagedFigures | null): void {
  metrics.set('staged', {}, figures?.events ?? null);
  metrics.set('stagedAge', {}, figures === null ? null : (figures.oldestMs ?? 0) / 1_000);
}

export function countLanded(metrics: LanderMetrics, { durationMs, files, queryableMs }: Landed): void {
  metrics.count('events', {}, queryableMs.length);
  metrics.observe('landingDuration', {}, durationMs / 1_000);
  for (const { table, rows } of files) {
    metrics.count('filesLanded', { table });
    metrics.count('rows', { table }, rows);
  }
  for (const ageMs of queryableMs) metrics.observe('queryable', {}, ageMs / 1_000);
}
