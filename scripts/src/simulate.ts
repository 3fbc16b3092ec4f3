import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { SABOTAGES, simulate, type SimulationResult } from '@nightporter/testing';
import { Command, InvalidArgumentError, Option } from 'commander';
import type { HistoryReport, WorkerRequest } from './simulate-worker.js';

interface Arguments {
  readonly seeds: number;
  readonly from: number;
  readonly seed?: number;
  readonly jobs: number;
  readonly sabotage?: string;
  readonly trace: boolean;
  readonly json: boolean;
}

/** The last line of stdout with `--json`. */
interface Summary {
  readonly histories: number;
  readonly violations: number;
  /** Histories that broke a promise. */
  readonly seeds: readonly number[];
  readonly events: number;
  readonly steps: number;
  readonly virtualSeconds: number;
  readonly seconds: number;
  readonly sabotage: string | null;
}

/** Seeds that a worker thread takes at once. */
const CHUNK = 5;
/** Stories printed at the end; the rest is a list of seeds. */
const STORIES_MAX = 5;

const program = new Command('simulate')
  .description(
    'Runs seeded histories of the real engines with every fault, over servers in memory, and checks every promise.',
  )
  .option('--seeds <count>', 'how many histories', wholeNumber, 500)
  .option('--from <seed>', 'the first seed', wholeNumber, 1)
  .option('--seed <seed>', 'replay this one history', wholeNumber)
  .option('--trace', 'with --seed: tell the history, line by line', false)
  .option('--jobs <count>', 'worker threads', wholeNumber, availableParallelism())
  .addOption(
    new Option('--sabotage <name>', 'take one rule away, which the simulation must notice').choices(
      SABOTAGES.map((sabotage) => sabotage.name),
    ),
  )
  .option('--json', 'print the summary as one line of JSON at the end', false);

await main(program.parse().opts());

async function main(args: Arguments): Promise<void> {
  const startedMs = performance.now();
  const reports = args.seed === undefined ? await runAll(args) : [await replay(args, args.seed)];
  const failing = reports
    .filter((report) => report.violations.length > 0)
    .sort((left, right) => left.seed - right.seed);
  for (const report of failing.slice(0, STORIES_MAX)) describe(report, args);
  const summary: Summary = {
    histories: reports.length,
    violations: sum(reports, (report) => report.violations.length),
    seeds: failing.map((report) => report.seed),
    events: sum(reports, (report) => report.events),
    steps: sum(reports, (report) => report.steps),
    virtualSeconds: Math.round(sum(reports, (report) => report.durationMs) / 1_000),
    seconds: Math.round((performance.now() - startedMs) / 100) / 10,
    sabotage: args.sabotage ?? null,
  };
  console.log(args.json ? JSON.stringify(summary) : inWords(summary));
  process.exitCode = failing.length > 0 ? 1 : 0;
}

async function replay(args: Arguments, seed: number): Promise<SimulationResult> {
  const sabotage = SABOTAGES.find(({ name }) => name === args.sabotage);
  const result = await simulate({ seed, tell: args.trace, ...(sabotage === undefined ? {} : { sabotage }) });
  for (const line of result.lines) console.log(line);
  console.error(`trace ${result.traceHash}, ${result.steps} steps`);
  return result;
}

/** Hands out seeds to the threads, a few at a time, since one history may take ten times as long as another. */
async function runAll(args: Arguments): Promise<readonly HistoryReport[]> {
  const reports: HistoryReport[] = [];
  const end = args.from + args.seeds;
  let next = args.from;
  const progress = setInterval(
    () => {
      const failing = reports.filter((report) => report.violations.length > 0).length;
      const line = `${reports.length} of ${args.seeds} histories, ${failing} with violations`;
      process.stderr.write(process.stderr.isTTY ? `\r${line} ` : `${line}\n`);
    },
    process.stderr.isTTY ? 500 : 10_000,
  );
  try {
    await Promise.all(Array.from({ length: Math.min(args.jobs, Math.ceil(args.seeds / CHUNK)) }, () => work()));
  } finally {
    clearInterval(progress);
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }
  return reports;

  async function work(): Promise<void> {
    const worker = new Worker(new URL('./simulate-worker.js', import.meta.url));
    try {
      while (next < end) {
        const from = next;
        next = Math.min(end, from + CHUNK);
        reports.push(...(await ask(worker, { from, to: next, sabotage: args.sabotage ?? null })));
      }
    } finally {
      await worker.terminate();
    }
  }
}

function ask(worker: Worker, request: WorkerRequest): Promise<readonly HistoryReport[]> {
  return new Promise((resolve, reject) => {
    const answered = (reports: readonly HistoryReport[]): void => {
      worker.off('error', failed);
      resolve(reports);
    };
    const failed = (error: unknown): void => {
      worker.off('message', answered);
      reject(new Error(`seeds ${request.from} to ${request.to - 1}`, { cause: error }));
    };
    worker.once('message', answered);
    worker.once('error', failed);
    worker.postMessage(request);
  });
}

function describe({ seed, violations }: HistoryReport, { sabotage, seed: replayed }: Arguments): void {
  console.error(`seed ${seed}:`);
  for (const { rule, detail, atMs } of violations) console.error(`  ${(atMs / 1_000).toFixed(3)} s ${rule}: ${detail}`);
  if (replayed !== undefined) return;
  console.error(
    `  npm run simulate -- --seed ${seed} --trace${sabotage === undefined ? '' : ` --sabotage ${sabotage}`}`,
  );
}

function inWords({ histories, violations, seeds, events, virtualSeconds, seconds, steps }: Summary): string {
  const size = `${histories} histories, ${events} events, ${steps} steps, ${virtualSeconds} s of virtual time in ${seconds} s`;
  return violations === 0 ? `${size}: no violation` : `${size}: ${violations} violations, seeds ${seeds.join(', ')}`;
}

function sum(reports: readonly HistoryReport[], of: (report: HistoryReport) => number): number {
  return reports.reduce((total, report) => total + of(report), 0);
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number of at least 1');
  return value;
}
