import { Command, InvalidArgumentError } from 'commander';

export interface DemoOptions {
  readonly orders: number;
  readonly clients: number;
  /** Ends standard output with one line of JSON. */
  readonly json: boolean;
  /** Leaves everything running after the report. */
  readonly keep: boolean;
  /** Kills relay and worker in between. */
  readonly kill: boolean;
  /** Another entry for the inventory worker, to see that the check notices a broken one. */
  readonly worker: string | null;
}

interface Flags extends Omit<DemoOptions, 'worker'> {
  readonly worker?: string;
}

export function parseOptions(argv: readonly string[]): DemoOptions {
  const flags = new Command('demo')
    .description(
      'Runs the whole system on this machine: orders over HTTP, events through MongoDB and RocketMQ to the stock, with kill -9 in between; then compares what was promised with what is there.',
    )
    .option('--orders <number>', 'orders to place (1 to 100000)', wholeNumber(100_000), 200)
    .option('--clients <number>', 'clients at once (1 to 64)', wholeNumber(64), 8)
    .option('--json', 'end standard output with the result as one line of JSON', false)
    .option('--keep', 'leave everything running after the report, until Ctrl-C', false)
    .option('--no-kill', 'kill neither relay nor worker')
    .option('--worker <file>', 'run this entry in place of the inventory worker, to see whether the check notices')
    .parse([...argv])
    .opts<Flags>();
  return { ...flags, worker: flags.worker ?? null };
}

function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) < 1 || Number(text) > max) {
      throw new InvalidArgumentError(`expected a whole number from 1 to ${max}`);
    }
    return Number(text);
  };
}
