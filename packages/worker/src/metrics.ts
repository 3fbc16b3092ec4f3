import type { ConsumerEvent, ConsumerObserver, ConsumerSnapshot, IncomingEvent } from '@nightporter/consumer';
import { WAITING_STATES, type Ages, type GroupFigures, type GroupStats } from '@nightporter/mongo';
import type { ErrorCode } from '@nightporter/protocol';
import { createMetrics, type Metrics, type ReadinessCheck, type Tracing } from '@nightporter/runtime';
import type { HandlerObserver } from './handlers.js';
import { CONSUMER_METRICS } from './metrics-table.js';

type ConsumerMetrics = Metrics<typeof CONSUMER_METRICS>;

export interface ConsumerMetricsOptions {
  readonly service: string;
  readonly group: string;
  readonly topics: readonly string[];
  /** Databases of the producers that can be asked themselves. */
  readonly producers: readonly string[];
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  /** Null until the consumer is composed. */
  readonly snapshot: () => ConsumerSnapshot | null;
  readonly stats: GroupStats;
  readonly ages: Ages;
  /** Topics whose producers have the clock of the group’s own database. */
  readonly topicsOnOneClock: readonly string[];
  /** What the service level allows from commit to settled. */
  readonly sloLatencyMs: number;
  /** Null where there are no traces. */
  readonly tracing?: Tracing | null;
}

/** The metrics of one group: counted from what the consumer tells, and looked up in its snapshot and database at each scrape. */
export function createConsumerMetrics(options: ConsumerMetricsOptions): {
  readonly metrics: ConsumerMetrics;
  readonly observe: ConsumerObserver;
  readonly handlerRan: HandlerObserver;
  /** To be called once the group is registered, and before it consumes: from then on events count for its latency. */
  readonly registered: () => Promise<void>;
} {
  const { checks, group, service, sloLatencyMs, snapshot, stats, tracing = null } = options;
  const buckets = { endToEnd: [sloLatencyMs / 1_000] };
  const metrics = createMetrics(CONSUMER_METRICS, { service, checks, buckets, tracing });
  const latency = new LatencyMetrics(metrics, options);
  showZeros(metrics, options);
  metrics.beforeScrape(() => {
    const now = snapshot();
    if (now !== null) setSnapshot(metrics, group, now);
  });
  const figures = new FreshFigures(stats);
  metrics.beforeScrape(async () => {
    // Gone until they are known: a database that is away must not leave the last figures standing.
    setFigures(metrics, options, null);
    setFigures(metrics, options, await figures.read());
  });
  return {
    metrics,
    observe: (event) => {
      count(metrics, options, event);
      if (event.kind === 'settled') latency.settled(event.event);
    },
    registered: async () => {
      latency.begin(await figures.read());
    },
    handlerRan: ({ eventType, outcome, durationMs }) => {
      metrics.observe('handlerDuration', { group, event_type: eventType, outcome }, durationMs / 1_000);
    },
  };
}

const DEAD_LETTER_CODES: readonly ErrorCode[] = [
  'NP_HANDLER_FAILED',
  'NP_EVENT_INVALID',
  'NP_EVENT_VERSION_UNSUPPORTED',
  'NP_DIGEST_MISMATCH',
  'NP_POSITION_LOST',
];
const SET_ASIDE_CODES: readonly ErrorCode[] = ['NP_MESSAGE_UNREADABLE', 'NP_VERSION_CONFLICT', 'NP_DIGEST_MISMATCH'];

/** From commit to settled, of what was written since the group is there: history that it takes in at its start was never late. */
class LatencyMetrics {
  readonly #metrics: ConsumerMetrics;
  readonly #options: ConsumerMetricsOptions;
  #fromMs = Number.POSITIVE_INFINITY;

  constructor(metrics: ConsumerMetrics, options: ConsumerMetricsOptions) {
    this.#metrics = metrics;
    this.#options = options;
    const { group, sloLatencyMs } = options;
    metrics.set('sloLatency', { group }, sloLatencyMs / 1_000);
    for (const within of ['true', 'false']) metrics.count('sloEvents', { group, within }, 0);
  }

  begin({ standings }: GroupFigures): void {
    this.#fromMs = Math.max(...standings.map(({ registeredAtMs }) => registeredAtMs));
  }

  settled({ createdAtMs, topic }: IncomingEvent): void {
    const { ages, group, sloLatencyMs, topicsOnOneClock } = this.#options;
    if (createdAtMs === undefined || createdAtMs < this.#fromMs || !topicsOnOneClock.includes(topic)) return;
    ages(createdAtMs, (ageMs) => {
      this.#metrics.observe('endToEnd', { group }, ageMs / 1_000);
      this.#metrics.count('sloEvents', { group, within: String(ageMs <= sloLatencyMs) });
    });
  }
}

/** An alarm on a rise does not see the first of a series that was not there before. */
function showZeros(metrics: ConsumerMetrics, { group, topics }: ConsumerMetricsOptions): void {
  for (const topic of topics) {
    for (const outcome of ['applied', 'ignored', 'skipped']) metrics.count('settled', { group, topic, outcome }, 0);
  }
  metrics.count('failures', { group, code: 'NP_HANDLER_FAILED' }, 0);
  for (const code of DEAD_LETTER_CODES) metrics.count('deadLetters', { group, code }, 0);
  for (const code of SET_ASIDE_CODES) metrics.count('setAside', { group, code }, 0);
  for (const reason of ['not-committed', 'unpublished', 'dead', 'deleted']) {
    metrics.count('unavailable', { group, reason }, 0);
  }
}

/** What only an event tells; everything else is in the snapshot. */
function count(metrics: ConsumerMetrics, { group, topics }: ConsumerMetricsOptions, event: ConsumerEvent): void {
  switch (event.kind) {
    case 'settled': {
      const topic = topics.includes(event.event.topic) ? event.event.topic : 'other';
      metrics.count('settled', { group, topic, outcome: event.outcome });
      return;
    }
    case 'parked': {
      if (event.failure === null) return;
      const { code } = event.failure;
      if (event.state === 'retry' || event.state === 'dead') metrics.count('failures', { group, code });
      if (event.state === 'dead') metrics.count('deadLetters', { group, code });
      return;
    }
    case 'set-aside':
      metrics.count('setAside', { group, code: event.failure.code });
      return;
    case 'version-unavailable':
      metrics.count('unavailable', { group, reason: event.reason });
      return;
    case 'broker-dead-letter':
    case 'dead-letter-copied':
    case 'dead-letter-not-copied':
    case 'broker-dead-letters-unavailable':
    case 'bootstrapping':
    case 'bootstrap-ended':
    case 'received':
    case 'duplicate':
    case 'conflict':
    case 'filtered':
    case 'filter-unavailable':
    case 'acknowledged':
    case 'woken':
    case 'swept':
    case 'unregistered':
    case 'ledger-unavailable':
    case 'database-unavailable':
    case 'broker-unavailable':
      return;
  }
}

function setSnapshot(metrics: ConsumerMetrics, group: string, snapshot: ConsumerSnapshot): void {
  const labels = { group };
  for (const key of COUNTED) metrics.countTo(key, labels, snapshot[key]);
  for (const [state, total] of Object.entries(snapshot.parked)) metrics.countTo('parkings', { group, state }, total);
  const { filterConfirmed: confirmed, filterRefuted: refuted, filterFailures: failed } = snapshot;
  for (const [outcome, total] of Object.entries({ confirmed, refuted, failed })) {
    metrics.countTo('filterAnswers', { group, outcome }, total);
  }
  metrics.set('batchesInHand', labels, snapshot.batchesInHand);
  metrics.set('claimsInHand', labels, snapshot.claimsInHand);
  metrics.set('paused', labels, Number(snapshot.paused));
}

/** Counted by the engine under the same names. */
const COUNTED = [
  'received',
  'redelivered',
  'duplicates',
  'conflicts',
  'woken',
  'ledgerSeen',
  'ledgerMissing',
  'ledgerFailures',
  'acknowledged',
  'brokerDeadLetters',
  'databaseFailures',
  'brokerFailures',
] as const;

function setFigures(
  metrics: ConsumerMetrics,
  { group, producers }: ConsumerMetricsOptions,
  figures: GroupFigures | null,
): void {
  for (const state of WAITING_STATES) {
    const waiting = figures?.waiting[state];
    metrics.set('waiting', { group, state }, waiting?.rows ?? null);
    metrics.set('oldestWaiting', { group, state }, waiting === undefined ? null : (waiting.oldestAgeMs ?? 0) / 1_000);
  }
  metrics.set('waitingCapped', { group }, figures === null ? null : Number(figures.isCapped));
  for (const producer of producers) {
    const standing = figures?.standings.find((one) => one.producer === producer);
    const labels = { group, producer };
    metrics.set('registered', labels, figures === null ? null : Number(standing !== undefined));
    metrics.set('lag', labels, standing === undefined ? null : standing.watermarkAgeMs / 1_000);
    metrics.set('bootstrapping', labels, standing === undefined ? null : Number(standing.state === 'bootstrapping'));
  }
  metrics.set('oldestUnconsumed', { group }, figures === null ? null : oldestUnconsumedMs(figures) / 1_000);
}

function oldestUnconsumedMs({ standings, waiting }: GroupFigures): number {
  const parked = (['gap', 'behind', 'retry', 'dead'] as const).map((state) => waiting[state].oldestAgeMs ?? 0);
  return Math.max(0, ...parked, ...standings.map(({ watermarkAgeMs }) => watermarkAgeMs));
}

/** What a scrape costs the database does not depend on how often somebody scrapes. */
const FRESH_MS = 5_000;

/** Figures that are at most {@link FRESH_MS} old; scrapes that come together share one reading. */
class FreshFigures {
  readonly #stats: GroupStats;
  #last: { readonly atMs: number; readonly figures: Promise<GroupFigures> } | null = null;

  constructor(stats: GroupStats) {
    this.#stats = stats;
  }

  async read(): Promise<GroupFigures> {
    const nowMs = performance.now();
    if (this.#last !== null && nowMs - this.#last.atMs < FRESH_MS) return this.#last.figures;
    const reading = { atMs: nowMs, figures: this.#stats.read() };
    this.#last = reading;
    try {
      return await reading.figures;
    } catch (error) {
      // Nobody else shall be told of this failure later.
      if (this.#last === reading) this.#last = null;
      throw error;
    }
  }
}
