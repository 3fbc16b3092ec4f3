import type { Stack } from '@nightporter/embedded';
import { connectMongo, engineOf } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createChaos, type Chaos } from './chaos.js';
import { reconcile } from '@nightporter/cli';
import { readEvidence } from './evidence.js';
import type { Fleet } from './fleet.js';
import { launchFleet, launchStack } from './launch.js';
import { watchLoad } from './live.js';
import type { DemoOptions } from './options.js';
import { STOCK } from './plan.js';
import type { Findings } from './report.js';
import { provokeRedeliveries, waitUntilSettled } from './settle.js';
import { GROUPS, READS, STOCK_GROUP, TOPICS, databasesFor, type Databases } from './shop.js';
import type { Surroundings } from './surroundings.js';
import { runTraffic, type TrafficResult } from './traffic.js';
import { judge } from './verdict.js';

const SETTLE_MS = 120_000;
const REDELIVERY_MS = 60_000;
const FAR_MS = 24 * 3_600_000;

export interface DemoRun {
  readonly findings: Findings;
  readonly fleet: Fleet;
  readonly logFolder: string;
}

/** Starts the stack and the services, has orders placed, provokes faults, waits for rest, and judges. */
export async function runDemo(options: DemoOptions, surroundings: Surroundings): Promise<DemoRun> {
  const started = performance.now();
  const { progress, signal } = surroundings;
  // The transactions that a killed worker left open hold their documents until the server gives them up: after 60 s by default.
  const stack = await launchStack(surroundings, { transactionLifetimeLimitSeconds: '5' });
  const client = await connectMongo({ uri: stack.mongodb.uri, appName: 'demo' });
  surroundings.atEnd('the connection', () => client.close());
  const databases = databasesFor(stack.mongodb.owned ? '' : `demo_${Date.now().toString(36)}_`);
  const logFolder = mkdtempSync(join(tmpdir(), 'nightporter-demo-'));
  const fleet = await startFleet({ stack, databases, logFolder, options, surroundings });
  progress(`services are ready (logs in ${logFolder})`);

  const chaos = options.kill ? createChaos(fleet, { orders: options.orders, progress }) : null;
  const traffic = await placeOrders({ options, fleet, chaos, client, databases, surroundings });
  progress(`${traffic.orders.size} orders placed`);
  await chaos?.finished();
  const rest = { client, databases, limitMs: SETTLE_MS, signal, progress };
  const settled = await waitUntilSettled(rest);
  const redelivered = await provokeRedeliveries({
    broker: stack.rocketmq,
    topic: TOPICS.orders,
    group: STOCK_GROUP,
    limitMs: REDELIVERY_MS,
    signal,
  });
  progress(
    redelivered === null
      ? 'the group did not come to the end of its topic again'
      : `${redelivered} messages were delivered once more`,
  );
  // Redeliveries that had an effect after all would show in new events.
  const cameToRest = settled && (await waitUntilSettled(rest));
  const findings = await investigate({ client, databases, traffic, stack });
  return {
    fleet,
    logFolder,
    findings: {
      ...findings,
      traffic,
      cameToRest,
      redelivered,
      kills: chaos?.kills() ?? [],
      clients: options.clients,
      elapsedMs: performance.now() - started,
    },
  };
}

interface FleetLaunch {
  readonly stack: Stack;
  readonly databases: Databases;
  readonly logFolder: string;
  readonly options: DemoOptions;
  readonly surroundings: Surroundings;
}

function startFleet({ stack, databases, logFolder, options, surroundings }: FleetLaunch): Promise<Fleet> {
  const stock = [...STOCK].map(([productId, quantity]) => `${productId}=${quantity}`).join(',');
  return launchFleet({ stack, databases, stock, logFolder, workerEntry: options.worker }, surroundings);
}

interface Traffic {
  readonly options: DemoOptions;
  readonly fleet: Fleet;
  readonly chaos: Chaos | null;
  readonly client: MongoClient;
  readonly databases: Databases;
  readonly surroundings: Surroundings;
}

async function placeOrders({
  options,
  fleet,
  chaos,
  client,
  databases,
  surroundings,
}: Traffic): Promise<TrafficResult> {
  const { signal } = surroundings;
  let placed = 0;
  const watch =
    options.rate === null ? null : watchLoad({ client, databases, options, surroundings, placed: () => placed });
  try {
    return await runTraffic({
      apiUrl: fleet.apiUrl,
      orders: options.orders,
      clients: options.clients,
      perSecond: options.rate,
      signal,
      onOrder: (done) => {
        placed = done;
        chaos?.onOrder(done);
      },
    });
  } finally {
    await watch?.end();
  }
}

interface Investigation {
  readonly client: MongoClient;
  readonly databases: Databases;
  readonly traffic: TrafficResult;
  readonly stack: Stack;
}

async function investigate({ client, databases, traffic, stack }: Investigation) {
  const evidence = await readEvidence(client, databases);
  // What has changed up to now, whatever now is on the database's clock: nothing is under way any more.
  const until = new Date(Date.now() + FAR_MS);
  const groups = Object.fromEntries(GROUPS.map((group) => [group, group])) as Readonly<
    Record<(typeof GROUPS)[number], string>
  >;
  const reconciliation = await reconcile({ client, databases, groups, since: null, until });
  const { engine, version } = await engineOf(client);
  const queues = await Promise.all(Object.values(TOPICS).map((topic) => stack.rocketmq.offsets({ topic })));
  return {
    engine: `${engine} ${version}`,
    broker: `RocketMQ ${stack.rocketmq.version}`,
    evidence,
    violations: judge({
      traffic,
      evidence,
      stock: STOCK,
      stockGroup: { group: STOCK_GROUP, topics: READS[STOCK_GROUP] },
    }),
    reconciliation,
    messages: queues.flat().reduce((sum, { minOffset, maxOffset }) => sum + maxOffset - minOffset, 0),
  };
}
