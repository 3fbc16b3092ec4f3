import { connectMongo } from '@nightporter/mongo';
import {
  createDeadNotifications,
  type DeadNotifications,
  type NotificationDocument,
} from '@nightporter/notification-worker';
import { Command, InvalidArgumentError, Option } from 'commander';

interface Flags {
  readonly mongodbUri: string;
  readonly notificationDb: string;
  readonly json: boolean;
}

interface ListFlags extends Flags {
  readonly limit: number;
  readonly after?: string;
}

interface RetryFlags extends Flags {
  readonly all: boolean;
  readonly by: string;
  readonly reason: string;
}

export function notificationsCommand(): Command {
  const list = withPlace(new Command('dead'))
    .description('Lists notifications that could not be sent, the oldest first, with the reason.')
    .option('--limit <number>', 'at most so many', count, 50)
    .option('--after <key>', 'behind this one')
    .action(listDead);
  const retry = withPlace(new Command('retry'))
    .description(
      'Has dead notifications sent again, with the same key, so that a receiver that has one already takes no second.',
    )
    .argument('[keys...]', 'those with these keys')
    .option('--all', 'all that are dead, 500 at most', false)
    .requiredOption('--by <name>', 'who does it')
    .requiredOption('--reason <text>', 'and why; both stay with the notification')
    .action(retryDead);
  return new Command('notifications')
    .description('What customers could not be told, and what to do about it.')
    .addCommand(list)
    .addCommand(retry);
}

function withPlace(command: Command): Command {
  return command
    .addOption(new Option('--mongodb-uri <uri>', 'where they are').env('MONGODB_URI').makeOptionMandatory())
    .option('--notification-db <name>', 'database of notification-worker', 'notification')
    .option('--json', 'print the result as one line of JSON', false);
}

async function listDead(flags: ListFlags): Promise<void> {
  await withNotifications(flags, async (dead) => {
    const { limit, after } = flags;
    const found = await dead.list({ limit, ...(after === undefined ? {} : { after }) });
    print(found, flags, found.length === 0 ? ['no notification is dead'] : found.map(line));
  });
}

async function retryDead(keys: readonly string[], flags: RetryFlags, command: Command): Promise<void> {
  if (keys.length === 0 && !flags.all) command.error('name the keys, or say --all');
  await withNotifications(flags, async (dead) => {
    const { by, reason } = flags;
    const retried = await dead.retry(flags.all ? 'all' : keys, { by, reason });
    print(retried, flags, [`${retried.length} notifications are due again`]);
  });
}

async function withNotifications(flags: Flags, work: (dead: DeadNotifications) => Promise<void>): Promise<void> {
  const client = await connectMongo({ uri: flags.mongodbUri, appName: 'nightporter-cli' });
  try {
    await work(createDeadNotifications({ client, database: flags.notificationDb }));
  } finally {
    await client.close();
  }
}

function print(value: unknown, { json }: Flags, lines: readonly string[]): void {
  process.stdout.write(`${json ? JSON.stringify(value) : lines.join('\n')}\n`);
}

function line({ _id, orderId, recipient, subject, attempts, lastFailure }: NotificationDocument): string {
  const why = lastFailure === undefined ? '' : `: ${lastFailure.message} (${lastFailure.at.toISOString()})`;
  return `${_id}  order ${orderId}, for ${recipient}, "${subject}", ${attempts} attempts${why}`;
}

function count(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('expected a whole number from 1 to 9999');
  return Number(text);
}
