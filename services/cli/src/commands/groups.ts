import {
  groupStandings,
  placeOfGroup,
  removeGroup,
  type GroupRemovalResult,
  type GroupStandingRow,
} from '@nightporter/ledger';
import { Command } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { connected, withConnection, type ConnectionFlags } from '../connection.js';
import {
  isConfirmed,
  withConfirmation,
  withDecision,
  type ConfirmationFlags,
  type DecisionFlags,
} from '../decision.js';
import { answer, at, duration, table } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json: boolean;
}

type RemoveFlags = Flags & DecisionFlags & ConfirmationFlags & { readonly dataIn?: string };

export function groupsCommand(cli: Cli): Command {
  return new Command('groups')
    .description('Consumer groups: lists those that are registered, or removes one.')
    .addCommand(listCommand(cli))
    .addCommand(removeCommand(cli));
}

function listCommand(cli: Cli): Command {
  return withConnection(
    new Command('list').description('Lists the groups that are registered with each producer, and how far each is.'),
  )
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter groups list\n',
    )
    .action((flags: Flags) =>
      connected(flags, async ({ deployment }) => {
        const found: GroupStandingRow[] = [];
        for (const producer of deployment.producers) found.push(...(await groupStandings(deployment, producer)));
        answer(cli, flags, found, told);
      }),
    );
}

function told(groups: readonly GroupStandingRow[]): string {
  const rows = groups.map((row) => [
    row.group,
    row.producer,
    row.topics.join(' '),
    row.state,
    at(row.watermark),
    duration(row.lagMs),
    row.database ?? 'not known',
    row.sweeper ?? 'nobody',
  ]);
  return rows.length === 0
    ? 'None.\n'
    : table(['group', 'of', 'topics', 'state', 'watermark', 'behind', 'database', 'sweeps'], rows);
}

function removeCommand(cli: Cli): Command {
  const description =
    'Takes a group out of the registry of every producer, so that retention no longer waits for it. Its workers must be stopped. With --data-in, what it knows of every event is deleted, too.';
  return withConfirmation(
    withDecision(withConnection(new Command('remove').description(description).argument('<group>', 'consumer group'))),
  )
    .option('--data-in <database>', "delete the group's inbox, positions and parked messages in this database")
    .option('--json', 'print one line of JSON', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 it was not registered and had no data, or not confirmed, 2 wrong use, or a worker runs, 3 look whether it was done.

Example:
  nightporter groups remove points@1 --data-in points --by ada --reason "points@2 has taken over" --yes
`,
    )
    .action((group: string, flags: RemoveFlags) =>
      connected(flags, async ({ client, deployment }) => {
        const { by, dataIn, reason } = flags;
        const what = dataIn === undefined ? '' : ` and everything that it knows in ${dataIn}`;
        if (!(await isConfirmed(cli, flags, `Group ${group} is removed${what}.`))) return;
        const producers = deployment.producers.map(({ database }) => database);
        const home = placeOfGroup(deployment, group);
        // On another deployment, where --group-db says so.
        const dataClient = home?.database === dataIn ? home?.client : undefined;
        const data = dataIn === undefined ? {} : { dataIn, ...(dataClient === undefined ? {} : { dataClient }) };
        const result = await removeGroup({ client, group, producers, by, reason, ...data });
        answer(cli, flags, result, toldRemoval);
        if (result.unregistered.length === 0 && deletedIn(result) === 0) cli.exitCode = EXIT.no;
      }),
    );
}

function deletedIn({ deleted }: GroupRemovalResult): number {
  return Object.values(deleted).reduce((sum, rows) => sum + rows, 0);
}

function toldRemoval(result: GroupRemovalResult): string {
  const { deleted, unregistered } = result;
  const counts = Object.entries(deleted).map(([name, rows]) => `${rows} of ${name}`);
  const where = unregistered.length === 0 ? 'It was not registered.' : `Taken out of ${unregistered.join(', ')}.`;
  return `${where} Documents deleted: ${counts.join(', ')}.\n`;
}
