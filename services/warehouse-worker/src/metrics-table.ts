import type { MetricTable } from '@nightporter/runtime';

/** What the lander tells Prometheus, beside the consumer that stages events. One worker of a group lands; the others stand by. */
export const LANDER_METRICS = {
  landing: {
    kind: 'gauge',
    name: 'nightporter_lander_landing',
    help: '1 while this worker has its turn to land.',
  },
  staged: {
    kind: 'gauge',
    name: 'nightporter_lander_staged_events',
    help: 'Events that the group has settled, and that are in no file yet.',
  },
  stagedAge: {
    kind: 'gauge',
    name: 'nightporter_lander_staged_oldest_seconds',
    help: 'Since the oldest of them occurred; 0 where there is none.',
  },
  files: {
    kind: 'gauge',
    name: 'nightporter_lander_files',
    help: 'Files that the manifest names. Told by the worker that lands.',
  },
  events: {
    kind: 'counter',
    name: 'nightporter_lander_events_total',
    help: 'Events landed: they are in a file that the manifest names.',
  },
  rows: {
    kind: 'counter',
    name: 'nightporter_lander_rows_total',
    help: 'Rows landed, by table; an event has one among all events, and others among the facts of orders.',
    labels: ['table'],
  },
  filesLanded: {
    kind: 'counter',
    name: 'nightporter_lander_files_landed_total',
    help: 'Files that landing wrote, one for each table and day of a transaction.',
    labels: ['table'],
  },
  landingDuration: {
    kind: 'histogram',
    name: 'nightporter_lander_landing_duration_seconds',
    help: 'From reading staged events until the manifest names their files.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  },
  queryable: {
    kind: 'histogram',
    name: 'nightporter_lander_queryable_seconds',
    help: 'From the moment that an event occurred, by its producer’s clock, until a query finds it, by the database’s clock.',
    buckets: [0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900],
  },
  merges: {
    kind: 'counter',
    name: 'nightporter_lander_merges_total',
    help: 'Merges of small files into one.',
  },
  mergedFiles: {
    kind: 'counter',
    name: 'nightporter_lander_merged_files_total',
    help: 'Files that were merged into others.',
  },
  removedFiles: {
    kind: 'counter',
    name: 'nightporter_lander_removed_files_total',
    help: 'Files removed, since their rows have been in others for long enough.',
  },
  failures: {
    kind: 'counter',
    name: 'nightporter_lander_failures_total',
    help: 'Turns of landing that failed; each is tried again.',
  },
} as const satisfies MetricTable;
