import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { startStack, type Stack } from '@nightporter/embedded';
import { Command, InvalidArgumentError } from 'commander';
import { auditBenchmark } from './bench/audit.js';
import type { Benchmark } from './bench/benchmark.js';
import { catchUp } from './bench/catch-up.js';
import { groupCommit } from './bench/group-commit.js';
import { retention } from './bench/retention.js';
import { warehouse } from './bench/warehouse.js';

const BENCHMARKS: readonly Benchmark[] = [groupCommit, catchUp, auditBenchmark, warehouse, retention];

type Undo = () => Promise<void>;

let isQuiet = false;

await main();

/** Progress goes to standard error; standard output gets one line of JSON. */
async function main(): Promise<void> {
  const program = new Command('bench').description(
    'Measures on a fresh MongoDB (or its stand-in: see `engine` in the result) and a real RocketMQ, and prints one line of JSON.',
  );
  for (const benchmark of BENCHMARKS) {
    const command = program.command(benchmark.name).description(benchmark.description);
    for (const option of benchmark.options) {
      command.option(`--${option.name} <number>`, option.description, positive, option.default);
    }
    command.option('--json', 'nothing but the line of JSON: no progress on standard error');
    command.action(async () => {
      const { json = false, ...given } = command.opts<Record<string, number> & { json?: boolean }>();
      isQuiet = json;
      const numbers = benchmark.options.map(({ name, ...option }) => [name, given[camelCase(name)] ?? option.default]);
      await measure(benchmark, new Map(numbers as [string, number][]));
    });
  }
  await program.parseAsync();
}

async function measure(benchmark: Benchmark, numbers: ReadonlyMap<string, number>): Promise<void> {
  const ending: Undo[] = [];
  const atEnd = (undo: Undo): void => {
    ending.push(undo);
  };
  const end = async (exitCode: number): Promise<void> => {
    for (const undo of ending.splice(0).reverse()) {
      await undo().catch((error: unknown) => {
        progress(`at the end: ${String(error)}`);
      });
    }
    process.exit(exitCode);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      void end(1);
    });
  }
  try {
    // Every commit is fsynced, as it would have to be where it counts.
    const stack = await startStack({ progress });
    atEnd(() => stack.stop());
    const startedAt = new Date().toISOString();
    const result = await benchmark.run({ stack, numbers, progress, atEnd });
    const report = { benchmark: benchmark.name, ...ranOn(stack, startedAt), options: Object.fromEntries(numbers) };
    process.stdout.write(`${JSON.stringify({ ...report, ...result })}\n`);
    await end(0);
  } catch (error) {
    isQuiet = false;
    progress(error instanceof Error ? (error.stack ?? error.message) : String(error));
    await end(1);
  }
}

function ranOn({ mongodb, rocketmq }: Stack, startedAt: string): Record<string, unknown> {
  return {
    run: randomBytes(4).toString('hex'),
    startedAt,
    engine: mongodb.engine,
    // A figure that is copied without its line must not pass for one of MongoDB.
    figuresOf: mongodb.engine === 'MongoDB' ? 'MongoDB' : `${mongodb.engine}, not MongoDB`,
    engineVersion: mongodb.version,
    rocketmqVersion: rocketmq.version,
    node: process.versions.node,
    processors: availableParallelism(),
  };
}

function camelCase(name: string): string {
  return name.replace(/-[a-z]/g, (hyphenated) => hyphenated.slice(1).toUpperCase());
}

function positive(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number of at least 1');
  return value;
}

function progress(line: string): void {
  if (!isQuiet) process.stderr.write(`bench: ${line}\n`);
}
