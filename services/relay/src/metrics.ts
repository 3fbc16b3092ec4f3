import type { OutboxRow } from '@nightporter/contracts';
import type {
  OutboxSnapshot,
  PublishError,
  RelayEvent,
  RelayObserver,
  RelaySnapshot,
  ShardSnapshot,
} from '@nightporter/relay';
import type { Ages } from '@nightporter/mongo';
import { createMetrics, type Metrics, type ReadinessCheck, type Tracing } from '@nightporter/runtime';
import { FailedBefore } from './failed-before.js';
import { RELAY_METRICS } from './metrics-table.js';

type RelayMetrics = Metrics<typeof RELAY_METRICS>;

export interface RelayMetricsOptions {
  /** Those of the configuration: no other becomes a label, whatever rows are written. */
  readonly topics: readonly string[];
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  /** Null until the relay is composed. */
  readonly snapshot: () => RelaySnapshot | null;
  readonly ages: Ages;
  /** Null where there are no traces. */
  readonly tracing?: Tracing | null;
}

const OUTCOMES = ['published', 'transient', 'topic', 'permanent'] as const;

/** The relay's metrics: counted from what it tells, and looked up in its snapshot at each scrape. */
export function createRelayMetrics(options: RelayMetricsOptions): {
  readonly metrics: RelayMetrics;
  readonly observe: RelayObserver;
} {
  const { ages, checks, snapshot, tracing = null } = options;
  const metrics = createMetrics(RELAY_METRICS, { service: 'relay', checks, tracing });
  const topics = new Set(options.topics);
  const sends = new SendMetrics(metrics, { topics, ages });
  metrics.beforeScrape(() => {
    const now = snapshot();
    if (now === null) return;
    setOutbox(metrics, now.outbox);
    for (const shard of now.shards) setShard(metrics, shard, now.outbox);
    metrics.set('instances', {}, now.sharing?.instances ?? null);
  });
  return {
    metrics,
    observe: (event) => {
      sends.observe(event);
      count(metrics, event);
    },
  };
}

/** What became of each send. */
class SendMetrics {
  readonly #metrics: RelayMetrics;
  readonly #topics: ReadonlySet<string>;
  readonly #ages: Ages;
  readonly #failedBefore = new FailedBefore();

  constructor(metrics: RelayMetrics, { topics, ages }: { topics: ReadonlySet<string>; ages: Ages }) {
    this.#metrics = metrics;
    this.#ages = ages;
    this.#topics = topics;
    for (const topic of [...topics, 'other']) {
      for (const outcome of OUTCOMES) metrics.count('sends', { topic, outcome }, 0);
      metrics.count('retries', { topic }, 0);
      metrics.count('decodeFailures', { topic }, 0);
    }
  }

  observe(event: RelayEvent): void {
    if (event.kind === 'published') this.#published(event.row, event.sendMs);
    if (event.kind === 'send-failed') this.#failed(event.row, event.error);
    if (event.kind === 'dead') this.#failedBefore.forget(event.row.eventId);
  }

  #published(row: OutboxRow, sendMs: number): void {
    const topic = this.#sent(row, 'published');
    this.#metrics.observe('sendDuration', { topic }, sendMs / 1_000);
    if (row.createdAtMs !== undefined) {
      this.#ages(row.createdAtMs, (ageMs) => {
        this.#metrics.observe('publishDelay', { topic }, ageMs / 1_000);
      });
    }
    this.#failedBefore.forget(row.eventId);
  }

  #failed(row: OutboxRow, { cause, failure }: PublishError): void {
    const topic = this.#sent(row, failure);
    // The publisher refuses what it can make no message of by itself; any other failure has an answer of the broker for its cause.
    if (failure === 'permanent' && cause === undefined) this.#metrics.count('decodeFailures', { topic });
    this.#failedBefore.add(row.eventId);
  }

  #sent(row: OutboxRow, outcome: (typeof OUTCOMES)[number]): string {
    // A row that was written past `emit()` may have anything for a topic.
    const topic = this.#topics.has(row.topic) ? row.topic : 'other';
    this.#metrics.count('sends', { topic, outcome });
    if (this.#failedBefore.has(row.eventId)) this.#metrics.count('retries', { topic });
    return topic;
  }
}

/** What only an event tells; everything else is in the snapshot. */
function count(metrics: RelayMetrics, event: RelayEvent): void {
  if (event.kind === 'repaired') metrics.count('repairedRows', { shard: event.shard }, event.rows);
  if (event.kind === 'capture-opened') {
    metrics.count('streams', { shard: event.shard, resumed: String(event.resumed) });
  }
  if (event.kind === 'capture-lost') metrics.count('streamsLost', { shard: event.shard });
  if (event.kind === 'lease-lost') metrics.count('leasesLost', { shard: event.shard });
}

const STATUSES = ['PENDING', 'PROCESSING', 'FAILED', 'DEAD'] as const;

function setOutbox(metrics: RelayMetrics, outbox: OutboxSnapshot | null): void {
  for (const status of STATUSES) {
    const figures = outbox?.unsettled[status];
    metrics.set('outboxEvents', { status }, figures?.rows ?? null);
    metrics.set('outboxOldest', { status }, figures === undefined ? null : (figures.oldestAgeMs ?? 0) / 1_000);
  }
  metrics.set('outboxCapped', {}, outbox === null ? null : Number(outbox.isCapped));
  metrics.set('figuresAge', {}, seconds(outbox?.ageMs));
  metrics.set('oplogReach', {}, seconds(reachMsOf(outbox)));
}

/** As the relay gives them. Shown at 0 from the start: an alarm on a rise does not see the first of a series that was not there before. */
const REPAIR_REASONS = [
  'history lost at the checkpoint',
  'stream lost',
  'an outbox was dropped or renamed',
  'rows that the stream did not bring',
];

/** In the order in which a shard usually comes by them. */
const SHARD_STATES = [
  'elsewhere',
  'standby',
  'starting',
  'sweeping',
  'following',
  'polling',
  'suspended',
  'draining',
  'stopped',
] as const satisfies readonly ShardSnapshot['state'][];

function setShard(metrics: RelayMetrics, snapshot: ShardSnapshot, outbox: OutboxSnapshot | null): void {
  const { shard, state, counts } = snapshot;
  const labels = { shard };
  for (const one of SHARD_STATES) metrics.set('shardState', { shard, state: one }, Number(one === state));
  metrics.set('epoch', labels, snapshot.epoch);
  metrics.set('lag', labels, seconds(snapshot.lagMs));
  metrics.set('tokenAge', labels, seconds(snapshot.sinceCheckpointMs));
  metrics.set('oplogHeadroom', labels, seconds(headroomMsOf(snapshot, outbox)));
  metrics.set('rowsInMemory', labels, snapshot.rowsInMemory);
  metrics.set('windowMax', labels, snapshot.windowMax);
  metrics.set('inFlight', labels, snapshot.sendsInFlight);
  metrics.set('lanesHeld', labels, snapshot.lanesHeld);
  metrics.set('topicsClosed', labels, snapshot.topicsClosed.length);
  metrics.set('paused', labels, Number(snapshot.paused.all || snapshot.paused.topics.length > 0));
  metrics.set('uncovered', labels, (snapshot.uncoveredForMs ?? 0) / 1_000);
  metrics.countTo('captured', labels, counts.captured);
  metrics.countTo('takeOvers', labels, counts.takeOvers);
  metrics.countTo('fenced', labels, counts.fenced);
  metrics.countTo('sweeps', labels, counts.sweeps);
  metrics.countTo('checkpoints', labels, counts.checkpointsSaved);
  metrics.countTo('databaseFailures', labels, counts.databaseFailures);
  for (const resumed of ['true', 'false']) metrics.count('streams', { shard, resumed }, 0);
  for (const key of ['streamsLost', 'leasesLost', 'repairedRows'] as const) metrics.count(key, labels, 0);
  for (const reason of REPAIR_REASONS) metrics.count('repairs', { shard, reason }, 0);
  for (const [reason, repairs] of Object.entries(snapshot.repairsByReason)) {
    metrics.countTo('repairs', { shard, reason }, repairs);
  }
  setMarks(metrics, snapshot);
}

function setMarks(metrics: RelayMetrics, { shard, counts }: ShardSnapshot): void {
  const { markedPublished, markedFailed, markedDead, refused, missing } = counts;
  const marks = { published: markedPublished, failed: markedFailed, dead: markedDead, refused, missing };
  for (const [outcome, total] of Object.entries(marks)) metrics.countTo('marks', { shard, outcome }, total);
}

function reachMsOf(outbox: OutboxSnapshot | null): number | null {
  return outbox?.history.kind === 'known' ? outbox.history.reachMs : null;
}

/** The token lies as far back as it is old, and as the stream was behind when it was saved. Polling has no token. */
function headroomMsOf({ sinceCheckpointMs, lagMs }: ShardSnapshot, outbox: OutboxSnapshot | null): number | null {
  const reachMs = reachMsOf(outbox);
  if (reachMs === null || sinceCheckpointMs === null || lagMs === null) return null;
  return Math.max(0, reachMs - sinceCheckpointMs - lagMs);
}

function seconds(milliseconds: number | null | undefined): number | null {
  return milliseconds === null || milliseconds === undefined ? null : milliseconds / 1_000;
}
