/**
 * Metrics of a process. Like the settings they come from one table per kind of process, which docs/metrics.md and the code share.
 * Engines know nothing of them: whoever composes a service turns its snapshots and events into figures.
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import { readinessOf, type ReadinessCheck } from './health.js';
import type { MetricLabel } from './metric-labels.js';
import type { SpanCounts, Tracing } from './tracing/tracing.js';

export interface MetricDefinition {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  /** By Prometheus's conventions: base units, `_total` for what only rises. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly MetricLabel[];
  /** Upper ends in ascending order; histograms only. */
  readonly buckets?: readonly number[];
}

export type MetricTable = Readonly<Record<string, MetricDefinition>>;

type KeyOf<Table extends MetricTable, Kind extends MetricDefinition['kind']> = {
  [Key in keyof Table]: Table[Key]['kind'] extends Kind ? Key : never;
}[keyof Table] &
  string;

type LabelNames<Definition extends MetricDefinition> = Definition extends {
  readonly labels: readonly (infer Label extends string)[];
}
  ? Label
  : never;

/** A value for each label of the metric, no more and no less. */
export type LabelValues<Definition extends MetricDefinition> = Readonly<Record<LabelNames<Definition>, string>>;

/** What `/metrics` answers. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** What figures are recorded with. */
export interface Recorder<Table extends MetricTable> {
  /** Raises a counter; by 0 only makes it visible. */
  count<Key extends KeyOf<Table, 'counter'>>(key: Key, labels: LabelValues<Table[Key]>, by?: number): void;
  /** Raises a counter to what somebody else has counted since the process started. */
  countTo<Key extends KeyOf<Table, 'counter'>>(key: Key, labels: LabelValues<Table[Key]>, total: number): void;
  /** Null takes the figure away: an unknown one must not look like 0, nor like its last value. */
  set<Key extends KeyOf<Table, 'gauge'>>(key: Key, labels: LabelValues<Table[Key]>, value: number | null): void;
  observe<Key extends KeyOf<Table, 'histogram'>>(key: Key, labels: LabelValues<Table[Key]>, value: number): void;
  /** Called before every answer, to bring in what is only looked at then. One that fails or hangs costs its own figures only. */
  beforeScrape(fill: () => Promise<void> | void): void;
}

export interface Metrics<Table extends MetricTable> extends Recorder<Table> {
  /** Registers another table, of something that the process does beside; its figures are told with the others. Once for each table. */
  extend<const Other extends MetricTable>(table: Other): Recorder<Other>;
  read(): Promise<Exposition>;
}

/** Every process has these. */
export const PROCESS_METRICS = {
  ready: {
    kind: 'gauge',
    name: 'nightporter_ready',
    help: '1 while `/readyz` answers 200: the process makes progress, or stands by in good health.',
  },
  scrapeFailures: {
    kind: 'counter',
    name: 'nightporter_scrape_failures_total',
    help: 'Answers of `/metrics` that lack figures, since these could not be read in time.',
  },
  spans: {
    kind: 'counter',
    name: 'nightporter_spans_total',
    help: 'Spans for traces, by what became of them: `exported`, `dropped` (too many wait for the collector) or `failed` (it did not take them). All 0 where traces are off.',
    labels: ['outcome'],
  },
} as const satisfies MetricTable;

export interface MetricsOptions {
  readonly service: string;
  /** Those of `/readyz`. */
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  /** Whose spans are counted, where there are any. */
  readonly tracing?: Pick<Tracing, 'counts'> | null;
  /** Ends of buckets, by the key of a histogram, that a setting adds to those of the table. */
  readonly buckets?: Readonly<Record<string, readonly number[]>>;
}

/** What is not there by then is left out of the answer. */
const FILL_MS = 3_000;

const NO_SPANS: SpanCounts = { exported: 0, dropped: 0, failed: 0 };
const SPAN_OUTCOMES = ['exported', 'dropped', 'failed'] as const;

/** Registers every metric of the table, of {@link PROCESS_METRICS} and of Node itself. */
export function createMetrics<const Table extends MetricTable>(
  table: Table,
  { buckets = {}, checks, service, tracing = null }: MetricsOptions,
): Metrics<Table> {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  const own = instruments(PROCESS_METRICS, registry);
  const spans = found(own.counters, 'spans');
  const fills: Fill[] = [
    async () => {
      found(own.gauges, 'ready').set((await readinessOf(checks)).kind === 'ready' ? 1 : 0);
    },
    () => {
      const counts = tracing?.counts() ?? NO_SPANS;
      spans.reset();
      for (const outcome of SPAN_OUTCOMES) spans.inc({ outcome }, counts[outcome]);
    },
  ];
  return {
    ...recorder<Table>(instruments(table, registry, buckets), fills),
    extend: (other) => recorder(instruments(other, registry), fills),
    read: async () => {
      const filled = await Promise.all(fills.map(inTime));
      found(own.counters, 'scrapeFailures').inc(filled.every(Boolean) ? 0 : 1);
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

type Fill = () => Promise<void> | void;

function recorder<Table extends MetricTable>(
  { counters, gauges, histograms }: ReturnType<typeof instruments>,
  fills: Fill[],
): Recorder<Table> {
  const totals = new Map<string, number>();
  const count = (key: string, labels: LabelsGiven, by: number): void => {
    found(counters, key).inc(labels, by);
  };
  return {
    count: (key, labels, by = 1) => {
      count(key, labels, by);
    },
    countTo: (key, labels, total) => {
      const place = `${key} ${JSON.stringify(labels)}`;
      count(key, labels, Math.max(0, total - (totals.get(place) ?? 0)));
      totals.set(place, Math.max(total, totals.get(place) ?? 0));
    },
    set: (key, labels, value) => {
      const gauge = found(gauges, key);
      if (value === null) gauge.remove(labels);
      else gauge.set(labels, value);
    },
    observe: (key, labels, value) => {
      found(histograms, key).observe(labels, value);
    },
    beforeScrape: (fill) => {
      fills.push(fill);
    },
  };
}

type LabelsGiven = Readonly<Record<string, string>>;

function instruments(
  table: MetricTable,
  registry: Registry,
  added: Readonly<Record<string, readonly number[]>> = {},
): {
  counters: ReadonlyMap<string, Counter>;
  gauges: ReadonlyMap<string, Gauge>;
  histograms: ReadonlyMap<string, Histogram>;
} {
  const counters = new Map<string, Counter>();
  const gauges = new Map<string, Gauge>();
  const histograms = new Map<string, Histogram>();
  for (const [key, { kind, name, help, labels = [], buckets }] of Object.entries(table)) {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (kind === 'counter') counters.set(key, new Counter(options));
    else if (kind === 'gauge') gauges.set(key, new Gauge(options));
    else {
      const ends = [...new Set([...(buckets ?? []), ...(added[key] ?? [])])].sort((left, right) => left - right);
      histograms.set(key, new Histogram({ ...options, buckets: ends }));
    }
  }
  return { counters, gauges, histograms };
}

function found<Instrument>(instrumentsByKey: ReadonlyMap<string, Instrument>, key: string): Instrument {
  const instrument = instrumentsByKey.get(key);
  if (instrument === undefined) throw new Error(`there is no metric ${key} of that kind`);
  return instrument;
}

/** Whether `fill` succeeded within its time. */
async function inTime(fill: Fill): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, FILL_MS, false);
  });
  const filling = Promise.resolve()
    .then(fill)
    .then(
      () => true,
      () => false,
    );
  try {
    return await Promise.race([filling, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** One table's section of docs/metrics.md. */
export function metricsSection(title: string, introduction: string, table: MetricTable): string {
  const rows = Object.values(table).map(({ kind, name, help, labels = [], buckets }) => {
    const ends = buckets === undefined ? '' : ` Buckets: ${buckets.join(', ')}.`;
    const cells = [`\`${name}\``, kind, labels.map((label) => `\`${label}\``).join(', '), `${help}${ends}`];
    return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  });
  const head = ['| metric | kind | labels | meaning |', '| --- | --- | --- | --- |'];
  return [`## ${title}`, '', introduction, '', ...head, ...rows, ''].join('\n');
}
