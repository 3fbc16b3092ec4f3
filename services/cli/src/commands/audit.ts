import { audit, type AuditReport, type AuditRequest } from '@nightporter/ledger';
import { Command } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, names, withConnection, type Connection, type ConnectionFlags } from '../connection.js';
import { answer, at, count, duration, notes, section, table, whole } from '../output.js';

/** The sum over all heads is one statement, and a server may read everything before it answers the first row of an ordered stream. */
const STATEMENT_MS = 10 * 60_000;

interface Flags extends ConnectionFlags {
  readonly json: boolean;
  readonly full: boolean;
  readonly groups?: readonly string[];
  readonly graceSeconds: number;
  readonly lagSeconds: number;
  readonly inboxRetentionDays: number;
  readonly limit: number;
}

export function auditCommand(cli: Cli): Command {
  return withConnection(
    new Command('audit').description(
      'Proves that what was committed was published, and that what was published is settled in every group, or names each difference. Goes on where the last audit ended.',
    ),
  )
    .option('--full', 'read everything again, and compare heads with rows and inboxes with the ledger', false)
    .option('--groups <names>', 'only these groups, by commas', names)
    .option(
      '--grace-seconds <number>',
      'what happened less long ago may be under way',
      whole({ min: 0, max: 86_400 }),
      60,
    )
    .option(
      '--lag-seconds <number>',
      'what is published less long ago is left to the next audit',
      whole({ min: 0, max: 600 }),
      10,
    )
    .option(
      '--inbox-retention-days <number>',
      'how long the groups keep records of their inbox',
      whole({ min: 1, max: 36_500 }),
      90,
    )
    .option('--limit <number>', 'differences that are told one by one', whole({ min: 1, max: 1_000_000 }), 1_000)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 no difference, 1 differences, 2 wrong use, 3 it could not be found out, or it was interrupted.

Examples:
  nightporter audit
  nightporter audit --full --json
  nightporter audit --groups points,shipping --grace-seconds 300
`,
    )
    .action((flags: Flags) => {
      const run = async ({ deployment }: Connection): Promise<void> => {
        const report = await audit(deployment, { ...requestOf(flags), ...watched(cli) });
        if (cli.io.isInteractive) cli.io.err('\n');
        answer(cli, flags, report, told);
        if (report.kind === 'interrupted') cli.exitCode = EXIT.failed;
        else if (report.differencesTotal > 0) cli.exitCode = EXIT.no;
      };
      return connected(flags, run, { socketMs: STATEMENT_MS });
    });
}

function requestOf(flags: Flags): AuditRequest {
  return {
    full: flags.full,
    graceMs: flags.graceSeconds * 1_000,
    lagMs: flags.lagSeconds * 1_000,
    inboxRetentionMs: flags.inboxRetentionDays * 86_400_000,
    differencesMax: flags.limit,
    ...(flags.groups === undefined ? {} : { groups: flags.groups }),
  };
}

function watched({ io }: Cli): Pick<AuditRequest, 'signal' | 'progress'> {
  return {
    signal: io.signal,
    progress: ({ producer, rows }) => {
      if (io.isInteractive) io.err(`\r${producer}: ${count(rows, 'row')} compared`);
    },
  };
}

function told(report: AuditReport): string {
  const { differences, differencesTotal, elapsedMs, groups, isFull, kind, producers } = report;
  const verdict = differencesTotal === 0 ? 'no difference' : count(differencesTotal, 'difference');
  return [
    `${isFull ? 'Full audit' : 'Audit of what is new'}, ${kind} in ${duration(elapsedMs)}: ${verdict}.\n`,
    section(
      'Committed',
      table(
        ['producer', 'committed', 'unpublished', 'present', 'deleted by retention'],
        producers.map(({ committed, deleted, present, producer, unpublished }) =>
          [producer, committed, unpublished, present ?? '-', deleted ?? '-'].map(String),
        ),
      ),
    ),
    section(
      'Published and settled',
      table(
        [
          'group',
          'of',
          'published',
          'new',
          'settled',
          'before start',
          'expired',
          'in flight',
          'different',
          'compared to',
        ],
        groups.map((group) =>
          [
            ...[
              group.group,
              group.producer,
              group.published,
              group.publishedInThisRun,
              group.settled,
              group.beforeStart,
            ],
            ...[group.expired, group.inFlight, group.different],
            `${at(group.comparedTo)}${group.isMarked ? '' : ' (not marked)'}`,
          ].map(String),
        ),
      ),
    ),
    section(
      'Differences',
      table(
        ['kind', 'event', 'aggregate', 'what, and what mends it'],
        differences.map(({ aggregate, eventId, kind: what, mend, text, version }) => [
          what,
          eventId ?? '-',
          aggregate === null ? '-' : `${aggregate} ${version ?? ''}`.trimEnd(),
          mend === null ? text : `${text} → ${mend}`,
        ]),
      ),
    ),
    differencesTotal > differences.length ? `… and ${differencesTotal - differences.length} more\n` : '',
    notes(report.notes),
  ].join('');
}
