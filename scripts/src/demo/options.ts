import { Command, InvalidArgumentError } from 'commander';

export interface DemoOptions {
  readonly orders: number;
  /** Most that are placed at once. */
  readonly clients: number;
  /** Orders that begin in a second; null: as fast as the clients can. */
  readonly rate: number | null;
  /** Ends standard output with one line of JSON. */
  readonly json: boolean;
  /** Leaves everything running after the report. */
  readonly keep: boolean;
  /** Kills relay and worker in between. */
  readonly kill: boolean;
  /** Another entry for the inventory worker, to see that the check notices a broken one. */
  readonly worker: string | null;
}

interface Flags extends Omit<DemoOptions, 'worker' | 'rate' | 'clients'> {
  readonly worker?: string;
  readonly rate?: number;
  readonly minutes?: number;
  readonly clients?: number;
}

const ORDERS_MAX = 100_000;
const CLIENTS_MAX = 64;
const RATE_MAX = 1_000;
const DEFAULT_CLIENTS = 8;
const DEFAULT_RATE = 50;
const DEFAULT_MINUTES = 1;
const SECONDS_PER_MINUTE = 60;

export function parseOptions(argv: readonly string[]): DemoOptions {
  const command = new Command('demo')
    .description(
      'Runs the whole shop on this machine: orders over HTTP, events through MongoDB and RocketMQ to every worker, with kill -9 in between; then compares what was promised with what is there.',
    )
    .option('--orders <number>', `orders to place (1 to ${ORDERS_MAX})`, wholeNumber(ORDERS_MAX), 120)
    .option(
      '--clients <number>',
      `clients at once (1 to ${CLIENTS_MAX}; default: 8, with --rate 64)`,
      wholeNumber(CLIENTS_MAX),
    )
    .option(
      '--rate <number>',
      `load: so many orders a second (1 to ${RATE_MAX}), shown live; nothing is killed`,
      wholeNumber(RATE_MAX),
    )
    .option('--minutes <number>', 'load: for so long (0.1 to 600; default: 1)', minutes)
    .option('--json', 'end standard output with the result as one line of JSON', false)
    .option('--keep', 'leave everything running after the report, until Ctrl-C', false)
    .option('--no-kill', 'kill neither relay nor worker')
    .option('--worker <file>', 'run this entry in place of the inventory worker, to see whether the check notices')
    .parse([...argv]);
  const { worker = null, clients, rate, minutes: forMinutes, ...flags } = command.opts<Flags>();
  if (rate === undefined && forMinutes === undefined)
    return { ...flags, worker, rate: null, clients: clients ?? DEFAULT_CLIENTS };
  const perSecond = rate ?? DEFAULT_RATE;
  const orders = Math.ceil(perSecond * (forMinutes ?? DEFAULT_MINUTES) * SECONDS_PER_MINUTE);
  if (orders > ORDERS_MAX)
    command.error(
      `error: --rate ${perSecond} for that long are ${orders} orders; accepted: up to ${ORDERS_MAX}, all of which are checked at the end`,
    );
  return { ...flags, worker, orders, rate: perSecond, clients: clients ?? CLIENTS_MAX, kill: false };
}

function minutes(text: string): number {
  if (!/^\d{1,3}(\.\d{1,2})?$/.test(text) || Number(text) < 0.1 || Number(text) > 600)
    throw new InvalidArgumentError('expected minutes from 0.1 to 600');
  return Number(text);
}

function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    if (!/^\d{1,9}$/.test(text) || Number(text) < 1 || Number(text) > max) {
      throw new InvalidArgumentError(`expected a whole number from 1 to ${max}`);
    }
    return Number(text);
  };
}
