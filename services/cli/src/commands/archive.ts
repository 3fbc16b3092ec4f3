import { openArchive } from '@nightporter/archive';
import { createRetention, type Destination, type RetentionResult } from '@nightporter/ledger';
import { NightporterError, namespace } from '@nightporter/protocol';
import { Command, Option } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import {
  isConfirmed,
  withConfirmation,
  withDecision,
  type ConfirmationFlags,
  type DecisionFlags,
} from '../decision.js';
import { answer, at, count, table, whole } from '../output.js';

interface Flags extends ConnectionFlags, DecisionFlags, ConfirmationFlags {
  readonly json: boolean;
  readonly to: 'delete' | 'collections' | 'files';
  readonly bucket: 'day' | 'month';
  readonly afterHours: number;
  readonly archiveDays?: number;
  readonly force: boolean;
}

interface Told {
  readonly producer: string;
  readonly result: RetentionResult;
}

/** Runs retention once, by hand. */
export function archiveCommand(cli: Cli): Command {
  const description =
    'Moves published rows that are old enough, and that every group of their topic has passed, out of the outbox: what the relay does by itself where RETENTION is set.';
  return withConfirmation(withDecision(withConnection(new Command('archive').description(description))))
    .addOption(
      new Option('--to <destination>', 'where they go; files go into --archive-folder')
        .choices(['delete', 'collections', 'files'])
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--bucket <size>', 'with --to collections: what one collection spans')
        .choices(['day', 'month'])
        .default('day'),
    )
    .option(
      '--after-hours <number>',
      'how long a published row stays in the outbox at least',
      whole({ min: 0, max: 876_000 }),
      168,
    )
    .option(
      '--archive-days <number>',
      'how long archives stay; then they are dropped (default: for ever)',
      whole({ min: 0, max: 36_500 }),
    )
    .option('--force', 'take rows that groups have not passed, too: what they miss is lost to them', false)
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 not confirmed, or interrupted, 2 wrong use, 3 what was moved stands; repeat it.

Examples:
  nightporter archive --to collections --after-hours 168 --by ada --reason "before the migration" --yes
  nightporter archive --to files --archive-folder /var/lib/nightporter/archive --by ada --reason "disk" --yes
`,
    )
    .action((flags: Flags) => run(cli, flags));
}

function run(cli: Cli, flags: Flags): Promise<void> {
  return connected(flags, async ({ client, deployment }) => {
    const destination = await destinationOf(flags);
    const names = deployment.producers.map(({ database }) => database);
    const how = flags.to === 'delete' ? 'are deleted' : `move to ${flags.to}`;
    const forced = flags.force ? ', whether groups have passed them or not' : '';
    const what = `Rows of ${names.join(', ')} that were published more than ${count(flags.afterHours, 'hour')} ago ${how}${forced}.`;
    if (!(await isConfirmed(cli, flags, what))) return;
    const told: Told[] = [];
    for (const producer of names) {
      const retention = createRetention({
        client,
        namespace: namespace(`${producer}.outbox`),
        destination,
        afterMs: flags.afterHours * 3_600_000,
        archiveMs: flags.archiveDays === undefined ? null : flags.archiveDays * 86_400_000,
      });
      const operator = { by: flags.by, reason: flags.reason };
      const result = await retention.run({ forced: flags.force, operator, signal: cli.io.signal });
      told.push({ producer, result });
      if (result.kind === 'interrupted') cli.exitCode = EXIT.no;
    }
    answer(cli, flags, told, toldAll);
  });
}

async function destinationOf({ archiveFolder, bucket, to }: Flags): Promise<Destination> {
  switch (to) {
    case 'delete':
      return { kind: 'delete' };
    case 'collections':
      return { kind: 'collections', bucket };
    case 'files':
      if (archiveFolder !== undefined) return { kind: 'files', files: await openArchive(archiveFolder) };
      throw new NightporterError(
        'NP_ACTION_INVALID',
        'Files need a place; accepted: --archive-folder, a folder or s3://bucket/prefix.',
      );
  }
}

function toldAll(told: readonly Told[]): string {
  const rows = told.map(({ producer, result }) => [
    producer,
    result.kind,
    `${result.rows}`,
    `${result.bytes}`,
    `${result.dropped.length}`,
    result.held.map(heldText).join('; ') || '-',
  ]);
  return table(['producer', 'run', 'rows', 'bytes', 'archives dropped', 'what stays, and why'], rows);
}

function heldText({ because, oldestMs, topic }: RetentionResult['held'][number]): string {
  const why =
    because.kind === 'no-group'
      ? 'no group reads it'
      : `group ${because.group} is at ${at(new Date(because.watermarkMs))}`;
  return `${topic} since ${at(new Date(oldestMs))}: ${why}`;
}
