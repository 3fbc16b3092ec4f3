import {
  replayOfGroup,
  type Deployment,
  type Into,
  type Replay,
  type ReplayPlan,
  type ReplayResult,
  type Selection,
} from '@nightporter/ledger';
import { NightporterError, type AggregateKey } from '@nightporter/protocol';
import { Command, Option } from 'commander';
import type { Cli } from '../cli.js';
import { connected, names, withConnection, type ConnectionFlags } from '../connection.js';
import { withDecision, type DecisionFlags } from '../decision.js';
import { answer, at, time, whole } from '../output.js';
import { aggregate } from './aggregate.js';

interface Flags extends ConnectionFlags, DecisionFlags {
  readonly json: boolean;
  readonly into: Into;
  readonly aggregates?: readonly AggregateKey[];
  readonly types?: readonly string[];
  readonly from?: Date;
  readonly to?: Date;
  readonly topics?: readonly string[];
  readonly rate?: number;
  readonly dryRun: boolean;
}

export function replayCommand(cli: Cli): Command {
  const description =
    'Replays published events into one group: what it is missing, or into a new group or generation. It parks them; the group’s workers run them in order. Other groups notice nothing.';
  return withDecision(
    withConnection(
      new Command('replay').description(description).argument('<group>', 'consumer group, or a generation: name@2'),
    ),
  )
    .addOption(
      new Option('--into <kind>', 'what-is-missing of a registered group, or a new-group')
        .choices(['what-is-missing', 'new-group'])
        .default('what-is-missing'),
    )
    .option('--aggregates <keys>', 'only these, source/type/id, by commas', aggregates)
    .option('--types <names>', 'only events of these types, by commas', names)
    .option('--from <time>', 'published at this time or later', time)
    .option('--to <time>', 'published before this time', time)
    .option(
      '--topics <names>',
      'topics that a new group reads, by commas (a registered group: those of its registration)',
      names,
    )
    .option('--rate <number>', 'events per second that become due', whole({ min: 1, max: 100_000 }))
    .option('--dry-run', 'say what would be replayed, and write nothing', false)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 2 wrong use, 3 repeat it: the same replay completes what an interrupted one began.

Examples:
  nightporter replay points --from 2026-11-30T12:00:00Z --to 2026-11-30T13:00:00Z --dry-run --by ada --reason "look"
  nightporter replay points --aggregates orders/order/4711 --by ada --reason "its message was lost"
  nightporter replay points@2 --into new-group --topics orders-events --types OrderPaid --group-db points@2=points --by ada --reason "new rules"
`,
    )
    .action((group: string, flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        const replay = await replayOf(deployment, group, flags);
        const request = { ...selectionOf(flags), into: flags.into };
        if (flags.dryRun) {
          answer(cli, flags, await replay.plan(request), toldPlan);
          return;
        }
        const rate = flags.rate === undefined ? {} : { ratePerSecond: flags.rate };
        const result = await replay.run({ ...request, ...rate, by: flags.by, reason: flags.reason });
        answer(cli, flags, result, toldResult);
      }),
    );
}

function aggregates(text: string): readonly AggregateKey[] {
  return names(text).map(aggregate);
}

function selectionOf({ aggregates: keys, from, to, types }: Flags): Selection {
  return {
    ...(keys === undefined ? {} : { aggregates: keys }),
    ...(types === undefined ? {} : { eventTypes: types }),
    ...(from === undefined ? {} : { publishedFrom: from }),
    ...(to === undefined ? {} : { publishedBefore: to }),
  };
}

async function replayOf({ groups, producers }: Deployment, group: string, { topics }: Flags): Promise<Replay> {
  const home = groups.find((place) => place.group === group);
  if (home === undefined)
    throw new NightporterError(
      'NP_ACTION_INVALID',
      `Where group ${group} keeps its data is not known; accepted: --group-db ${group}=<database>.`,
    );
  return replayOfGroup({ producers }, home, topics);
}

function toldPlan({ aggregates: of, events, first, last, missing }: ReplayPlan): string {
  if (first === null || last === null) return 'Nothing is selected.\n';
  return `${events} events of ${of} aggregates are selected, published from ${at(first.publishedAt)} to ${at(last.publishedAt)}; the group has ${missing} of them neither settled nor parked.\n`;
}

function toldResult({ aggregates: of, conflicts, events, known, parked, skipped }: ReplayResult): string {
  return `${events} events of ${of} aggregates: ${parked} parked for the workers, ${skipped} parked to be skipped, ${known} known before, ${conflicts} in conflict.\n`;
}
