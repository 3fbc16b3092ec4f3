import { setTimeout as delay } from 'node:timers/promises';
import { DuckDBInstance, version } from '@duckdb/node-api';
import { ordersCatalogue } from '@nightporter/contracts';
import { connectMongo, ensureOutboxCollections } from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { createWarehouseFolder, MANIFEST, readManifest } from '@nightporter/warehouse-worker';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ServiceProcess } from '../demo/service-process.js';
import { GOAL_P99_MS, verdictOn } from './warehouse-goal.js';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';

const TOPICS = ['orders-events', 'inventory-events', 'shipping-events'];
const READY_MS = 60_000;
const QUERYABLE_MS = 120_000;
const LOOK_EVERY_MS = 20;
/** Left out of the figures: every process is slow at first. */
const WARM_UP_EVENTS = 50;

export const warehouse: Benchmark = {
  name: 'warehouse',
  description:
    'Milliseconds from the commit of an event to the moment at which DuckDB has answered a query with it, through relay, broker and a warehouse-worker; and whether 99 of 100 were there within 10 s.',
  options: [
    { name: 'events', description: 'events to commit', default: 1_000 },
    { name: 'rate', description: 'events per second', default: 50 },
    { name: 'land-every-ms', description: 'LAND_EVERY_MS of the worker', default: 1_000 },
  ],
  run: measureWarehouse,
};

async function measureWarehouse(context: BenchmarkContext): Promise<Readonly<Record<string, unknown>>> {
  const { stack } = context;
  const client = await connectMongo({ uri: stack.mongodb.uri });
  context.atEnd(() => client.close());
  const folder = await mkdtemp(join(tmpdir(), 'nightporter-bench-'));
  context.atEnd(() => rm(folder, { recursive: true, force: true }));
  for (const name of TOPICS) await stack.rocketmq.createTopic({ name });
  await stack.rocketmq.createGroup({ name: 'warehouse', topics: TOPICS });
  await ensureOutboxCollections(client, 'orders');
  await startServices(context, folder);
  const reader = await openReader(folder);
  context.atEnd(() => reader.close());
  const outbox = createOutbox({ client, database: 'orders', source: 'orders', catalogue: ordersCatalogue });
  const commit = (index: number): Promise<string> =>
    outbox.transaction(async ({ emit }) => {
      const payload = { transactionId: `t${index}`, amountMinor: index, currency: 'EUR' };
      const order = { aggregateType: 'order', aggregateId: `order ${index}` };
      return (await emit({ ...order, eventType: 'OrderPaid', payload })).eventId;
    });
  const run = (events: number, from: number): Promise<readonly number[]> =>
    latencies({ events, rate: numberOf(context, 'rate'), commit: (index) => commit(from + index), reader });
  await run(WARM_UP_EVENTS, 0);
  context.progress('warm; measuring');
  const measured = (await run(numberOf(context, 'events'), WARM_UP_EVENTS)).toSorted((one, other) => one - other);
  const at = (share: number): number => Math.round(measured[Math.floor((measured.length - 1) * share)] ?? Number.NaN);
  const manifest = await readManifest(createWarehouseFolder(folder));
  const p99Ms = at(0.99);
  const verdict = verdictOn(p99Ms);
  context.progress(`p99 ${p99Ms} ms from commit to queryable; the goal is ${GOAL_P99_MS} ms at most: ${verdict}`);
  return {
    duckdbVersion: version(),
    measured: measured.length,
    p50Ms: at(0.5),
    p99Ms,
    goalP99Ms: GOAL_P99_MS,
    verdict,
    maxMs: at(1),
    files: manifest?.files.length ?? 0,
    changes: manifest?.revision ?? 0,
  };
}

async function startServices(context: BenchmarkContext, folder: string): Promise<void> {
  const { stack } = context;
  const shared = { MONGODB_URI: stack.mongodb.uri, ROCKETMQ_ENDPOINTS: stack.rocketmq.endpoints };
  const settings = {
    relay: { ...shared, MONGODB_DB: 'relay', OUTBOX_NAMESPACES: 'orders.outbox', TOPICS: 'orders-events' },
    'warehouse-worker': {
      ...shared,
      WAREHOUSE_FOLDER: folder,
      LAND_EVERY_MS: String(numberOf(context, 'land-every-ms')),
    },
  };
  const ended = new AbortController();
  const services = Object.entries(settings).map(([name, own]) => {
    const service = new ServiceProcess({
      name,
      entry: fileURLToPath(new URL(`../../../services/${name}/dist/main.js`, import.meta.url)),
      settings: own,
      logFile: join(folder, `${name}.log`),
      onUnexpectedExit: (error) => {
        ended.abort(error);
      },
    });
    context.atEnd(() => service.stop());
    return service;
  });
  await Promise.all(services.map((service) => service.ready({ limitMs: READY_MS, signal: ended.signal })));
}

interface Reader {
  /** Ids of events that can be queried by now, and could not when it was asked before. */
  look(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Asks DuckDB for what the manifest names. */
async function openReader(folder: string): Promise<Reader> {
  const place = createWarehouseFolder(folder);
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const known = new Set<string>();
  let seen: string | null = null;
  return {
    async look() {
      const current = await place.versionOf(MANIFEST);
      if (current === seen) return [];
      seen = current;
      const files = (await readManifest(place))?.files.filter(
        ({ name, table }) => table === 'events' && !known.has(name),
      );
      if (files === undefined || files.length === 0) return [];
      const list = files.map(({ name }) => `'${join(folder, name)}'`).join(', ');
      const answer = await connection.runAndReadAll(`SELECT event_id FROM read_parquet([${list}])`);
      for (const { name } of files) known.add(name);
      return answer.getRows().map(([id]) => String(id));
    },
    close: () => {
      connection.closeSync();
      instance.closeSync();
      return Promise.resolve();
    },
  };
}

/** Of each event, on the clock of this process alone: from the answer to its commit to the answer of the query that has it. */
async function latencies({
  commit,
  events,
  rate,
  reader,
}: {
  commit: (index: number) => Promise<string>;
  events: number;
  rate: number;
  reader: Reader;
}): Promise<readonly number[]> {
  const committedMs = new Map<string, number>();
  const queryableMs = new Map<string, number>();
  const state = { isDone: false };
  const writing = (async (): Promise<void> => {
    const startedMs = performance.now();
    for (let index = 0; index < events; index += 1) {
      const dueMs = (index * 1_000) / rate - (performance.now() - startedMs);
      if (dueMs > 0) await delay(dueMs);
      committedMs.set(await commit(index), performance.now());
    }
    state.isDone = true;
  })();
  const reading = (async (): Promise<void> => {
    let endMs = Number.POSITIVE_INFINITY;
    while (!state.isDone || [...committedMs.keys()].some((id) => !queryableMs.has(id))) {
      if (state.isDone) endMs = Math.min(endMs, performance.now() + QUERYABLE_MS);
      if (performance.now() > endMs) throw new Error(`not every event could be queried within ${QUERYABLE_MS} ms`);
      for (const id of await reader.look()) if (!queryableMs.has(id)) queryableMs.set(id, performance.now());
      await delay(LOOK_EVERY_MS);
    }
  })();
  await Promise.all([writing, reading]);
  return [...committedMs].map(([id, atMs]) => (queryableMs.get(id) ?? Number.NaN) - atMs);
}
