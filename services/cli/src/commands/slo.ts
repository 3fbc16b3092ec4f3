import { serviceLevel, type GroupServiceLevel, type ServiceLevel, type SloVerdict } from '@nightporter/ledger';
import { Command, InvalidArgumentError } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import { answer, at, duration, notes, section, table, whole } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly thresholdSeconds: number;
  readonly sample: number;
}

export function sloCommand(cli: Cli): Command {
  return withConnection(
    new Command('slo')
      .description(
        'Tells for each group how many of its events were settled in time, by windows, and whether that calls for somebody: 99.5 % within the threshold, from commit to settled, on the database’s clock.',
      )
      .argument('[group]', 'consumer group (default: all)'),
  )
    .option(
      '--threshold-seconds <number>',
      'what takes no longer is in time; SLO_LATENCY_MS of the workers is what the alarms go by',
      seconds,
      5,
    )
    .option(
      '--sample <records>',
      'newest records of each inbox that are read, at most',
      whole({ min: 1, max: 1_000_000 }),
      20_000,
    )
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 every group keeps its level, or settled nothing, 1 one calls for a page or a ticket, 2 wrong use or no such group, 3 it could not be found out.

Examples:
  nightporter slo
  nightporter slo points --threshold-seconds 0.5 --json
`,
    )
    .action((group: string | undefined, flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        const found = await serviceLevel(deployment, {
          thresholdMs: flags.thresholdSeconds * 1_000,
          recordsMax: flags.sample,
          ...(group === undefined ? {} : { group }),
        });
        answer(cli, flags, found, told);
        if (found.groups.some(({ verdict: { kind } }) => kind === 'page' || kind === 'ticket')) cli.exitCode = EXIT.no;
      }),
    );
}

const SECONDS_MAX = 3_600;

function seconds(text: string): number {
  const value = /^\d{1,4}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0 && value <= SECONDS_MAX))
    throw new InvalidArgumentError(`expected seconds from 0.001 to ${SECONDS_MAX}, such as 5 or 0.5`);
  return value;
}

function told({ groups, notKnown, objective, thresholdMs }: ServiceLevel): string {
  return [
    `${percent(objective)} of the events within ${thresholdMs} ms of their commit.\n`,
    ...groups.map((level) => section(`${level.group}: ${sentence(level.verdict)}`, groupText(level))),
    notKnown.length === 0 ? '' : '\n',
    notes(notKnown),
  ].join('');
}

function groupText({ notes: lines, sample, windows }: GroupServiceLevel): string {
  const rows = windows.map(({ isWhole, window, ...figures }) => [
    `${window}${isWhole ? '' : ' (part)'}`,
    `${figures.settled}`,
    `${figures.within}`,
    figures.share === null ? '-' : percent(figures.share),
    duration(figures.p50Ms),
    duration(figures.p99Ms),
    figures.budgetLeft === null ? '-' : percent(figures.budgetLeft),
    figures.burnRate?.toFixed(1) ?? '-',
    `${figures.notKnown}`,
  ]);
  const head = ['window', 'settled', 'in time', 'share', 'p50', 'p99', 'budget left', 'burn rate', 'not known'];
  const partial =
    sample.completeFrom === null
      ? []
      : [`${sample.records} records were read, complete from ${at(sample.completeFrom)} on; --sample reads more.`];
  return `${table(head, rows)}${notes([...partial, ...lines])}`;
}

function sentence(verdict: SloVerdict): string {
  switch (verdict.kind) {
    case 'ok':
      return 'ok';
    case 'nothing-settled':
      return 'nothing was settled, so nothing can be said';
    case 'page':
    case 'ticket':
      return `${verdict.kind}, since the burn rate of ${verdict.long} and of ${verdict.short} is above ${verdict.factor}`;
  }
}

function percent(part: number): string {
  return `${(part * 100).toFixed(2)} %`;
}
