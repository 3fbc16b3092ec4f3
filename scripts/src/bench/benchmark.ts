import type { RocketMqAdmin } from '@nightporter/embedded';

/** A number that can be given on the command line as `--<name> <number>`. */
export interface BenchmarkOption {
  /** In kebab case. */
  readonly name: string;
  readonly description: string;
  readonly default: number;
}

/** Servers to measure on. */
export interface BenchmarkStack {
  readonly mongodb: { readonly uri: string };
  readonly rocketmq: RocketMqAdmin & { readonly endpoints: string };
}

export interface BenchmarkContext {
  /** Fresh servers, for this run alone: a store that was used before is slower. */
  readonly stack: BenchmarkStack;
  /** The options, by their names. */
  readonly numbers: ReadonlyMap<string, number>;
  /** For people, on standard error. */
  progress(line: string): void;
  /** Runs at the end, last one first, also when the benchmark was interrupted. */
  atEnd(undo: () => Promise<void>): void;
}

/** One subcommand of `npm run bench`. What `run` resolves to is printed as JSON, beside what ran where. */
export interface Benchmark {
  readonly name: string;
  readonly description: string;
  readonly options: readonly BenchmarkOption[];
  run(context: BenchmarkContext): Promise<Readonly<Record<string, unknown>>>;
}

export function numberOf({ numbers }: BenchmarkContext, name: string): number {
  const value = numbers.get(name);
  if (value === undefined) throw new Error(`The benchmark has no option ${name}.`);
  return value;
}
