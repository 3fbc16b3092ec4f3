import { createCatalogue, defineEvent } from '@nightporter/contracts';
import { createRetention, type Destination } from '@nightporter/ledger';
import {
  OUTBOX_COLLECTIONS,
  connectMongo,
  createArchiveFolder,
  ensureOutboxCollections,
  registerGroup,
  type GroupDocument,
} from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';
import { MEASURED_EVENT } from './messages.js';
import { writePublishedRows } from './published-rows.js';
import { ratiosOf, writeFigures, type Window, type WriteFigures } from './retention-figures.js';
import { WriteLoad, type WriteSample } from './write-load.js';

const DAY_MS = 86_400_000;
const AGE_MS = 30 * DAY_MS;
const TOPIC = 'bench-events';
/** Retention of one phase that takes longer has stalled. */
const RETENTION_LIMIT_MS = 600_000;

const TARGETS = ['delete', 'collections', 'files'] as const;
type Target = (typeof TARGETS)[number];

interface Phase {
  readonly target: Target;
  readonly windows: readonly Window[];
  readonly samples: readonly WriteSample[];
  readonly rows: number;
  readonly batches: number;
  readonly repeated: number;
  readonly failed: number;
}

interface TargetFigures {
  readonly alone: WriteFigures;
  readonly beside: WriteFigures;
  /** Of the second to the first. */
  readonly ratios: ReturnType<typeof ratiosOf>;
  /** Rows that left the outbox in a second, pauses included. */
  readonly retainedPerSecond: number;
  readonly rows: number;
  readonly batches: number;
  /** Business transactions that had to be run again, and that failed, alone or beside. */
  readonly writesRepeated: number;
  readonly writesFailed: number;
}

export const retention: Benchmark = {
  name: 'retention',
  description:
    'What retention costs the business writes beside it, where it deletes, moves to collections and moves to files: latency and rate of the writes alone and beside retention, in turn.',
  options: [
    { name: 'rows', description: 'old published rows of each phase', default: 4_000 },
    { name: 'rounds', description: 'phases of each kind, with the order inside of them turned round', default: 2 },
    { name: 'seconds', description: 'how long the writers are measured alone in each phase', default: 5 },
    { name: 'writers', description: 'business transactions at once', default: 4 },
    { name: 'batch', description: 'most rows in one transaction of retention', default: 1_000 },
    { name: 'pause', description: 'milliseconds of rest between two of them', default: 100 },
  ],
  run: measureRetention,
};

/** How business writes do alone and beside retention; in every phase both, so that each compares with its own. */
async function measureRetention(context: BenchmarkContext): Promise<Record<Target, TargetFigures>> {
  const client = await connectMongo({ uri: context.stack.mongodb.uri, poolMax: 50 });
  context.atEnd(() => client.close());
  const phases: Phase[] = [];
  for (let round = 0; round < numberOf(context, 'rounds'); round += 1) {
    for (const target of TARGETS) phases.push(await measurePhase(context, client, { target, round }));
  }
  const figuresOf = (target: Target): TargetFigures => targetFigures(phases.filter((phase) => phase.target === target));
  return { delete: figuresOf('delete'), collections: figuresOf('collections'), files: figuresOf('files') };
}

async function measurePhase(
  context: BenchmarkContext,
  client: MongoClient,
  { target, round }: { target: Target; round: number },
): Promise<Phase> {
  const database = `bench-${target}-${round}`;
  await prepare(context, client, database);
  const load = new WriteLoad({ ...businessEvent(), client, database, writers: numberOf(context, 'writers') });
  const windows: Window[] = [];
  let moved = { rows: 0, batches: 0 };
  const alone = (): Promise<unknown> => delay(numberOf(context, 'seconds') * 1_000);
  const beside = async (): Promise<void> => {
    moved = await retain(context, client, { database, target });
  };
  try {
    // Not measured: connections are opened, and the server gets warm.
    await delay(1_000);
    const order = round % 2 === 0 ? (['alone', 'beside'] as const) : (['beside', 'alone'] as const);
    for (const kind of order) {
      const startedMs = performance.now();
      await (kind === 'alone' ? alone() : beside());
      windows.push({ kind, startedMs, endedMs: performance.now() });
    }
  } finally {
    await load.stop();
  }
  const { failed, repeated, samples } = load;
  context.progress(`${database}: ${samples.length} writes, ${moved.rows} rows retained in ${moved.batches} batches`);
  return { target, windows, samples, ...moved, repeated, failed };
}

async function prepare(context: BenchmarkContext, client: MongoClient, database: string): Promise<void> {
  await ensureOutboxCollections(client, database);
  await client.db(database).createCollection('documents');
  const publishedAt = new Date(Date.now() - AGE_MS);
  await writePublishedRows(client, {
    database,
    topic: TOPIC,
    count: numberOf(context, 'rows'),
    publishedAt: () => publishedAt,
  });
  await registerGroup(client, database, { group: 'bench', topics: [TOPIC] });
  const groups = client.db(database).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  await groups.updateOne({ _id: 'bench' }, { $set: { watermark: new Date() } });
}

async function retain(
  context: BenchmarkContext,
  client: MongoClient,
  { database, target }: { database: string; target: Target },
): Promise<{ readonly rows: number; readonly batches: number }> {
  const run = createRetention({
    client,
    namespace: namespace(`${database}.${OUTBOX_COLLECTIONS.outbox}`),
    destination: await destinationOf(context, target),
    afterMs: DAY_MS,
    batchRowsMax: numberOf(context, 'batch'),
    pauseMs: numberOf(context, 'pause'),
  });
  const { batches, rows } = await run.run({ signal: AbortSignal.timeout(RETENTION_LIMIT_MS) });
  if (rows !== numberOf(context, 'rows')) throw new Error(`${database}: ${rows} rows were retained, not all.`);
  return { rows, batches };
}

async function destinationOf(context: BenchmarkContext, target: Target): Promise<Destination> {
  switch (target) {
    case 'delete':
      return { kind: 'delete' };
    case 'collections':
      return { kind: 'collections', bucket: 'day' };
    case 'files': {
      const folder = await mkdtemp(join(tmpdir(), 'nightporter-bench-'));
      context.atEnd(() => rm(folder, { recursive: true, force: true }));
      return { kind: 'files', files: createArchiveFolder(folder) };
    }
  }
}

function businessEvent() {
  const event = { aggregateType: 'sample', eventType: MEASURED_EVENT };
  const defined = defineEvent({ ...event, type: event.eventType, version: 1, topic: TOPIC, schema: z.unknown() });
  return { event, catalogue: createCatalogue([defined]) };
}

function targetFigures(phases: readonly Phase[]): TargetFigures {
  const sum = (of: (phase: Phase) => number): number => phases.reduce((total, phase) => total + of(phase), 0);
  const measured = (kind: Window['kind']) =>
    phases.flatMap(({ samples, windows }) =>
      windows.filter((window) => window.kind === kind).map((window) => ({ window, samples })),
    );
  const alone = writeFigures(measured('alone'));
  const beside = writeFigures(measured('beside'));
  const besideMs = measured('beside').reduce((total, { window }) => total + window.endedMs - window.startedMs, 0);
  const rows = sum((phase) => phase.rows);
  return {
    alone,
    beside,
    ratios: ratiosOf({ alone, beside }),
    retainedPerSecond: Math.round((rows * 1_000) / besideMs),
    rows,
    batches: sum((phase) => phase.batches),
    writesRepeated: sum((phase) => phase.repeated),
    writesFailed: sum((phase) => phase.failed),
  };
}
