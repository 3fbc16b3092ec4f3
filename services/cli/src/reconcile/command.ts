import { openArchive } from '@nightporter/archive';
import { connectMongo, OUTBOX_COLLECTIONS, type GroupDocument } from '@nightporter/mongo';
import { Command, Option } from 'commander';
import { EXIT, type Cli } from '../cli.js';
import { archiveOption } from '../connection.js';
import { notes, time, whole } from '../output.js';
import type { MongoClient } from 'mongodb';
import type { Difference } from './facts.js';
import { readAtRest, reconcile, settledBefore, type Reconciliation } from './reconcile.js';
import { readWarehouse } from './warehouse.js';

interface Flags {
  readonly mongodbUri: string;
  readonly ordersDb: string;
  readonly inventoryDb: string;
  readonly shippingDb: string;
  readonly pointsDb: string;
  readonly inventoryGroup: string;
  readonly shippingGroup: string;
  readonly ordersGroup: string;
  readonly pointsGroup: string;
  readonly notificationDb: string;
  readonly notificationGroup: string;
  readonly warehouseDb: string;
  readonly warehouseGroup: string;
  readonly warehouseFolder?: string;
  readonly archiveFolder?: string;
  readonly since?: Date;
  readonly settleSeconds: number;
  readonly json: boolean;
}

export function reconcileCommand(cli: Cli): Command {
  const command = new Command('reconcile')
    .description(
      'Compares orders, payments, stock, points, shipments, what customers were told, and the warehouse, and names each difference with the event at which the story of the order stopped.',
    )
    .addOption(new Option('--mongodb-uri <uri>', 'where all of them are').env('MONGODB_URI').makeOptionMandatory())
    .option(
      '--since <time>',
      'only orders that have changed since, ISO 8601 (sums over all orders, and what names an order that is not there, are left out then)',
      time,
    )
    .option(
      '--settle-seconds <number>',
      'orders that changed less long ago may be under way and are left out',
      whole({ min: 0, max: 99_999 }),
      10,
    )
    .addOption(
      new Option('--warehouse-folder <folder>', 'compare the files of the warehouse too (default: leave them out)').env(
        'WAREHOUSE_FOLDER',
      ),
    )
    .addOption(archiveOption())
    .option('--json', 'print the result as one line of JSON', false);
  for (const name of ['orders', 'inventory', 'shipping', 'points', 'notification', 'warehouse'])
    command
      .option(`--${name}-db <name>`, `database of ${name}`, name)
      .option(`--${name}-group <name>`, `consumer group of ${name}`, name);
  return command
    .addHelpText(
      'after',
      `
What customers were told is compared where the group of notification is registered with orders.

Exit codes: 0 no difference, 1 differences, 2 wrong use, 3 it could not be found out.

Examples:
  nightporter reconcile --mongodb-uri mongodb://127.0.0.1:27017
  nightporter reconcile --since 2026-11-30T00:00:00Z --json
`,
    )
    .action((flags: Flags) => run(cli, flags));
}

async function run(cli: Cli, flags: Flags): Promise<void> {
  const archive = flags.archiveFolder === undefined ? {} : { archive: await openArchive(flags.archiveFolder) };
  const client = await connectMongo({ uri: flags.mongodbUri, appName: 'nightporter-cli' });
  const { warehouseDb: database, warehouseFolder: folder, warehouseGroup } = flags;
  try {
    const { until, warehouse } = await readAtRest({
      settledBefore: () => settledBefore(client, flags.settleSeconds),
      readWarehouse: async () => (folder === undefined ? null : readWarehouse(client, { database, folder })),
    });
    const isTelling = await isRegistered(client, { database: flags.ordersDb, group: flags.notificationGroup });
    const result = await reconcile(
      {
        client,
        databases: {
          orders: flags.ordersDb,
          inventory: flags.inventoryDb,
          shipping: flags.shippingDb,
          points: flags.pointsDb,
          ...(isTelling ? { notification: flags.notificationDb } : {}),
          ...(folder === undefined ? {} : { warehouse: database }),
        },
        groups: {
          inventory: flags.inventoryGroup,
          shipping: flags.shippingGroup,
          orders: flags.ordersGroup,
          points: flags.pointsGroup,
          ...(isTelling ? { notification: flags.notificationGroup } : {}),
          ...(folder === undefined ? {} : { warehouse: warehouseGroup }),
        },
        ...(warehouse === null ? {} : { warehouse }),
        ...archive,
        since: flags.since ?? null,
        until,
      },
      (orders) => {
        if (cli.io.isInteractive) cli.io.err(`\r${orders} orders compared`);
      },
    );
    if (cli.io.isInteractive) cli.io.err('\n');
    const notCompared = [...(isTelling ? [] : ['notifications']), ...(folder === undefined ? ['warehouse'] : [])];
    cli.io.out(flags.json ? `${JSON.stringify({ ...result, notCompared })}\n` : told(result, notCompared));
    if (result.differencesTotal > 0) cli.exitCode = EXIT.no;
  } finally {
    await client.close();
  }
}

/** Whether a group has ever begun with the events of a producer. */
async function isRegistered(
  client: MongoClient,
  { database, group }: { readonly database: string; readonly group: string },
): Promise<boolean> {
  const groups = client.db(database).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  return (await groups.countDocuments({ _id: group, topics: { $exists: true } })) > 0;
}

function told(
  { orders, refundsDue, differences, differencesTotal, notKnown }: Reconciliation,
  notCompared: readonly string[],
): string {
  const lines = [
    `${orders} orders compared: ${differencesTotal} differences, ${refundsDue.length} refunds due`,
    ...(notCompared.length > 0 ? [`not compared: ${notCompared.join(', ')}`] : []),
    ...differences.map(line),
    ...(differencesTotal > differences.length ? [`… and ${differencesTotal - differences.length} more`] : []),
    ...refundsDue.map(
      ({ _id, orderId, amountMinor, currency, cause }) =>
        `refund due: ${amountMinor} ${currency} of payment ${_id} for order ${orderId} (${cause})`,
    ),
  ];
  return `${lines.join('\n')}\n${notes(notKnown)}`;
}

function line({ orderId, between, detail, brokeAt }: Difference): string {
  const where = brokeAt === null ? '' : `; it stopped at ${brokeAt.eventType} ${brokeAt.eventId}, which ${brokeAt.why}`;
  return `${between}: ${orderId === null ? '' : `order ${orderId} `}${detail}${where}`;
}
