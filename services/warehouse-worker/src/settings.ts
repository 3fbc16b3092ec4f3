import { integer, setting, text } from '@nightporter/runtime';

/** The settings that the warehouse has beside those of every worker. */
export const warehouseSettings = {
  folder: setting({
    name: 'WAREHOUSE_FOLDER',
    kind: text({ charactersMax: 4_096 }),
    description:
      'Where the files are: a local or shared folder, the same for all workers of the group, and for no other group. It is created where it is missing.',
  }),
  landEveryMs: setting({
    name: 'LAND_EVERY_MS',
    kind: integer({ min: 50, max: 600_000 }),
    unit: 'ms',
    default: '1000',
    description: 'How long it rests after landing what there was: the longest that an event waits for its file.',
  }),
  landEventsMax: setting({
    name: 'LAND_EVENTS_MAX',
    kind: integer({ min: 1, max: 10_000 }),
    unit: 'events',
    default: '2000',
    description: 'Most events that are landed in one transaction.',
  }),
  landerLeaseMs: setting({
    name: 'LANDER_LEASE_MS',
    kind: integer({ min: 1_000, max: 600_000 }),
    unit: 'ms',
    default: '10000',
    description:
      'How long nothing is landed after the worker that lands was killed; the others of the group stage meanwhile.',
  }),
  compactFilesMin: setting({
    name: 'COMPACT_FILES_MIN',
    kind: integer({ min: 2, max: 1_000 }),
    unit: 'files',
    default: '16',
    description: 'So many files of one table, day and size become one.',
  }),
  compactRowsMax: setting({
    name: 'COMPACT_ROWS_MAX',
    kind: integer({ min: 1_000, max: 1_000_000 }),
    unit: 'rows',
    default: '100000',
    description: 'Most rows of a file that others are merged into. It is put together in memory.',
  }),
  compactColdMs: setting({
    name: 'COMPACT_COLD_MS',
    kind: integer({ min: 1_000, max: 2_592_000_000 }),
    unit: 'ms',
    default: '3600000',
    description:
      'A day that nothing was added to for so long becomes one file of each table, as far as COMPACT_ROWS_MAX lets it.',
  }),
  keepReplacedMs: setting({
    name: 'KEEP_REPLACED_MS',
    kind: integer({ min: 1_000, max: 2_592_000_000 }),
    unit: 'ms',
    default: '600000',
    description:
      'How long a file stays once its rows are in another: longer than any query that has read the manifest before.',
  }),
};
