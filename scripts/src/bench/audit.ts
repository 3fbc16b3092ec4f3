import { defaultEventKey, digestOf, envelopeOf, type OutboxDocument } from '@nightporter/contracts';
import { audit, type AuditReport, type Deployment } from '@nightporter/ledger';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  connectMongo,
  ensureConsumerCollections,
  ensureOutboxCollections,
  placeId,
  positionId,
  registerGroup,
  type GroupDocument,
} from '@nightporter/mongo';
import { aggregateKey, aggregateVersion, epoch, eventId, slotOf, type EventId } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';

const [PRODUCER, CONSUMER, GROUP, TOPIC, SOURCE] = ['audited', 'auditing', 'readers', 'audited-events', 'audited'];
const WRITE = 2_000;

/** How long audits take, and what they hold in memory, over events that are written in bulk, published and settled already. */
export const auditBenchmark: Benchmark = {
  name: 'audit',
  description: 'A full audit, then one of what is new: time and memory.',
  options: [
    { name: 'events', description: 'events, published and settled', default: 200_000 },
    { name: 'aggregates', description: 'aggregates that they belong to', default: 20_000 },
    { name: 'fresh', description: 'events between the two audits', default: 1_000 },
  ],
  run,
};

async function run(context: BenchmarkContext): Promise<Readonly<Record<string, unknown>>> {
  const [events, aggregates, fresh] = ['events', 'aggregates', 'fresh'].map((name) => numberOf(context, name)) as [
    number,
    number,
    number,
  ];
  const progress = (line: string): void => {
    context.progress(line);
  };
  const client = await connectMongo({ uri: context.stack.mongodb.uri, socketMs: 600_000 });
  context.atEnd(() => client.close());
  await ensureOutboxCollections(client, PRODUCER);
  await ensureConsumerCollections(client, CONSUMER);
  await registerGroup(client, PRODUCER, { group: GROUP, topics: [TOPIC] });
  const versions = new Map<number, number>();
  const started = performance.now();
  await write(client, { versions, from: 0, count: events, aggregates, progress });
  const writtenMs = Math.round(performance.now() - started);
  const deployment: Deployment = {
    producers: [{ client, database: PRODUCER }],
    groups: [{ client, database: CONSUMER, group: GROUP }],
    relay: null,
  };
  const first = await measured(deployment, { isFull: true, progress });
  await write(client, { versions, from: events, count: fresh, aggregates, progress });
  const second = await measured(deployment, { isFull: false, progress });
  return { writtenMs, full: first, incremental: second };
}

interface Measured {
  readonly elapsedMs: number;
  readonly eventsPerSecond: number;
  readonly rowsRead: number;
  readonly differences: number;
  readonly settled: number;
  /** Of this process, above what it had at the beginning. */
  readonly heapGrowthMiB: number;
  readonly heapPeakMiB: number;
  readonly rssPeakMiB: number;
}

async function measured(
  deployment: Deployment,
  { isFull, progress }: { readonly isFull: boolean; readonly progress: (line: string) => void },
): Promise<Measured> {
  const before = process.memoryUsage().heapUsed;
  let heapPeak = before;
  let rssPeak = 0;
  let told = 0;
  const report: AuditReport = await audit(deployment, {
    full: isFull,
    graceMs: 0,
    lagMs: 0,
    progress: ({ rows }) => {
      const { heapUsed, rss } = process.memoryUsage();
      heapPeak = Math.max(heapPeak, heapUsed);
      rssPeak = Math.max(rssPeak, rss);
      if (rows - told < 20_000) return;
      told = rows;
      progress(`${rows} rows compared, heap ${mib(heapUsed)} MiB`);
    },
  });
  const [group] = report.groups;
  const rowsRead = group?.publishedInThisRun ?? 0;
  return {
    elapsedMs: report.elapsedMs,
    eventsPerSecond: Math.round((rowsRead * 1_000) / report.elapsedMs),
    rowsRead,
    differences: report.differencesTotal,
    settled: group?.settled ?? 0,
    heapGrowthMiB: mib(heapPeak - before),
    heapPeakMiB: mib(heapPeak),
    rssPeakMiB: mib(rssPeak),
  };
}

function mib(bytes: number): number {
  return Math.round(bytes / 1_048_576);
}

interface Load {
  readonly versions: Map<number, number>;
  readonly from: number;
  readonly count: number;
  readonly aggregates: number;
  readonly progress: (line: string) => void;
}

/** As outbox, relay and group would have left them, in bulk. */
async function write(client: MongoClient, { aggregates, count, from, progress, versions }: Load): Promise<void> {
  for (let start = from; start < from + count; start += WRITE) {
    const end = Math.min(start + WRITE, from + count);
    const rows = Array.from({ length: end - start }, (_, index) =>
      rowOf({ index: start + index, aggregate: (start + index) % aggregates, versions, from }),
    );
    await writeRows(client, rows);
    if ((end - from) % 50_000 === 0) progress(`${end - from} of ${count} events written`);
  }
  await client
    .db(PRODUCER)
    .collection<GroupDocument>(OUTBOX_COLLECTIONS.groups)
    .updateOne({ _id: GROUP }, [{ $set: { watermark: '$$NOW', state: 'live' } }]);
}

const BEGAN_MS = Date.now() - 60_000;

function rowOf({
  aggregate,
  from,
  index,
  versions,
}: Pick<Load, 'versions' | 'from'> & { readonly index: number; readonly aggregate: number }): OutboxDocument {
  const version = (versions.get(aggregate) ?? 0) + 1;
  versions.set(aggregate, version);
  const identity = { source: SOURCE, aggregateType: 'sample', aggregateId: `aggregate-${aggregate}` };
  // Some are published at one moment. What comes after the first audit is published after it, as its mark relies upon.
  const at = new Date(from === 0 ? BEGAN_MS + Math.floor(index / 10) : Date.now());
  const eventKey = defaultEventKey(identity);
  const event = {
    _id: idOf(index),
    ...identity,
    aggregateVersion: aggregateVersion(version),
    eventType: 'SampleHappened',
    eventVersion: 1,
    occurredAt: at,
    headers: { correlationId: `story-${index}` },
    payload: { value: index, text: 'as long as a small event may be', lines: [{ product: 'apple', quantity: 3 }] },
  };
  const publication = {
    messageId: `message-${index}`,
    topic: TOPIC,
    relay: 'bench',
    epoch: epoch(1),
    capturedAt: at,
    form: 'original' as const,
  };
  const state = {
    status: 'PUBLISHED' as const,
    retryCount: 0,
    nextRetryAt: null,
    lastError: null,
    revision: 2,
    skip: null,
    unanswered: false,
  };
  const digest = digestOf(envelopeOf(event, 'original'));
  const moments = { createdAt: at, publishedAt: at, updatedAt: at };
  return { ...event, topic: TOPIC, eventKey, digest, slot: slotOf(eventKey), ...state, ...moments, publication };
}

function idOf(index: number): EventId {
  const hex = (BEGAN_MS + index).toString(16).padStart(12, '0');
  return eventId(`${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${index.toString(16).padStart(12, '0')}`);
}

async function writeRows(client: MongoClient, rows: readonly OutboxDocument[]): Promise<void> {
  const [producer, consumer] = [client.db(PRODUCER), client.db(CONSUMER)];
  const last = new Map(rows.map((row) => [aggregateKey(row), row]));
  await producer.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox).insertMany([...rows], { ordered: false });
  const upsert = (_id: string, fields: object) => ({
    updateOne: { filter: { _id }, update: { $set: fields }, upsert: true },
  });
  const heads = [...last].map(([key, { aggregateVersion: version, eventKey }]) => upsert(key, { version, eventKey }));
  await producer.collection<{ _id: string }>(OUTBOX_COLLECTIONS.heads).bulkWrite(heads, { ordered: false });
  const records = rows.map((row) => {
    const aggregate = aggregateKey(row);
    const version = row.aggregateVersion;
    const outcome = { outcome: 'applied', digest: row.digest, appliedDigest: row.digest, attempts: 1, duplicates: 0 };
    const moments = {
      receivedAt: row.createdAt,
      processedAt: row.createdAt,
      expireAt: new Date(Date.now() + 86_400_000),
    };
    return {
      _id: placeId(GROUP, aggregate, version),
      group: GROUP,
      eventId: row._id,
      aggregate,
      version,
      ...outcome,
      ...moments,
    };
  });
  await consumer.collection<{ _id: string }>(CONSUMER_COLLECTIONS.inbox).insertMany(records, { ordered: false });
  const positions = [...last].map(([aggregate, { aggregateVersion: version }]) =>
    upsert(positionId(GROUP, aggregate), {
      group: GROUP,
      aggregate,
      version,
      startVersion: 0,
      state: 'open',
      revision: version,
    }),
  );
  await consumer.collection<{ _id: string }>(CONSUMER_COLLECTIONS.positions).bulkWrite(positions, { ordered: false });
}
