import { connectMongo } from '@nightporter/mongo';
import {
  createDeadNotifications,
  type DeadNotifications,
  type NotificationDocument,
} from '@nightporter/notification-worker';
import { Command, Option } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { withDecision, type DecisionFlags } from '../decision.js';
import { answer, count, whole } from '../output.js';

interface Flags {
  readonly mongodbUri: string;
  readonly notificationDb: string;
  readonly json: boolean;
}

interface ListFlags extends Flags {
  readonly limit: number;
  readonly after?: string;
}

type RetryFlags = Flags & DecisionFlags & { readonly all: boolean };

export function notificationsCommand(cli: Cli): Command {
  return new Command('notifications')
    .description('What customers could not be told, and what to do about it.')
    .addCommand(listCommand(cli))
    .addCommand(retryCommand(cli));
}

function listCommand(cli: Cli): Command {
  return withPlace(new Command('dead'))
    .description('Lists notifications that could not be sent, the oldest first, with the reason.')
    .option('--limit <number>', 'at most so many', whole({ min: 1, max: 9_999 }), 50)
    .option('--after <key>', 'behind this one')
    .addHelpText(
      'after',
      '\nExit codes: 0 listed, also where there is none, 2 wrong use, 3 it could not be found out.\n\nExample:\n  nightporter notifications dead --limit 10\n',
    )
    .action((flags: ListFlags) =>
      withNotifications(flags, async (dead) => {
        const { after, limit } = flags;
        answer(cli, flags, await dead.list({ limit, ...(after === undefined ? {} : { after }) }), toldDead);
      }),
    );
}

function retryCommand(cli: Cli): Command {
  return withDecision(withPlace(new Command('retry')))
    .description(
      'Has dead notifications sent again, with the same key, so that a receiver that has one already takes no second.',
    )
    .argument('[keys...]', 'those with these keys')
    .option('--all', 'all that are dead, 500 at most', false)
    .addHelpText(
      'after',
      `
Exit codes: 0 done, 1 none was dead, or not all of those that were named, 2 wrong use, 3 look whether it was done.

Examples:
  nightporter notifications retry 01936f9e-…:smtp:ada --by ada --reason "the address is right now"
  nightporter notifications retry --all --by ada --reason "the mail server is back"
`,
    )
    .action((keys: readonly string[], flags: RetryFlags, command: Command) => {
      if (keys.length === 0 && !flags.all) command.error('name the keys, or say --all');
      return withNotifications(flags, async (dead) => {
        const { all, by, reason } = flags;
        const retried = await dead.retry(all ? 'all' : keys, { by, reason });
        answer(cli, flags, retried, ({ length }) => `${count(length, 'notification')} due again\n`);
        if (retried.length === 0 || (!all && retried.length < new Set(keys).size)) cli.exitCode = EXIT.no;
      });
    });
}

function withPlace(command: Command): Command {
  return command
    .addOption(new Option('--mongodb-uri <uri>', 'where they are').env('MONGODB_URI').makeOptionMandatory())
    .option('--notification-db <name>', 'database of notification-worker', 'notification')
    .option('--json', 'print one line of JSON', false);
}

async function withNotifications(flags: Flags, work: (dead: DeadNotifications) => Promise<void>): Promise<void> {
  const client = await connectMongo({ uri: flags.mongodbUri, appName: 'nightporter-cli' });
  try {
    await work(createDeadNotifications({ client, database: flags.notificationDb }));
  } finally {
    await client.close();
  }
}

function toldDead(found: readonly NotificationDocument[]): string {
  return found.length === 0 ? 'None.\n' : found.map((one) => `${line(one)}\n`).join('');
}

function line({ _id, orderId, recipient, subject, attempts, lastFailure }: NotificationDocument): string {
  const why = lastFailure === undefined ? '' : `: ${lastFailure.message} (${lastFailure.at.toISOString()})`;
  return `${_id}  order ${orderId}, for ${recipient}, "${subject}", ${count(attempts, 'attempt')}${why}`;
}
