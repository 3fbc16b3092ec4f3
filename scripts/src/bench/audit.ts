import { audit, type AuditReport, type Deployment } from '@nightporter/ledger';
import { connectMongo } from '@nightporter/mongo';
import { auditedLedger } from './audited-ledger.js';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';

const [PRODUCER, TOPIC] = ['audited', 'audited-events'];
const TOLD_EVERY = 20_000;

/** How long audits take, and what they hold in memory, over events that are written in bulk, published and settled already. */
export const auditBenchmark: Benchmark = {
  name: 'audit',
  description: 'A full audit, then one of what is new: time and memory.',
  options: [
    { name: 'events', description: 'events, published and settled', default: 200_000 },
    { name: 'aggregates', description: 'aggregates that they belong to', default: 2_000 },
    { name: 'groups', description: 'groups that have settled all of them', default: 2 },
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
  const groups = Array.from({ length: numberOf(context, 'groups') }, (_, index) => ({
    group: `readers-${index + 1}`,
    database: `auditing-${index + 1}`,
  }));
  const ledger = await auditedLedger({ client, producer: PRODUCER, topic: TOPIC, groups, aggregates });
  const started = performance.now();
  await ledger.write(events, (written) => {
    if (written % TOLD_EVERY === 0) progress(`${written} of ${events} events written`);
  });
  const writtenMs = Math.round(performance.now() - started);
  const deployment: Deployment = {
    producers: [{ client, database: PRODUCER }],
    groups: groups.map((home) => ({ client, ...home })),
    relay: null,
  };
  const first = await measured(deployment, { isFull: true, progress });
  await ledger.write(fresh);
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
