import { openArchive } from '@nightporter/archive';
import {
  GROUP_HOMES_ACCEPTED,
  discoverDeployment,
  parseGroupHomes,
  type Deployment,
  type GroupHome,
  type GroupPlace,
  type ProducerPlace,
} from '@nightporter/ledger';
import { connectMongo } from '@nightporter/mongo';
import { NightporterError } from '@nightporter/protocol';
import { InvalidArgumentError, Option, type Command } from 'commander';
import type { MongoClient } from 'mongodb';

export interface ConnectionFlags {
  readonly mongodbUri: string;
  readonly producers?: readonly string[];
  readonly relayDb?: string;
  readonly groupDb?: readonly GroupHome[];
  readonly archiveFolder?: string;
}

export interface Connection {
  readonly client: MongoClient;
  readonly deployment: Deployment;
}

/** Adds what every command needs to find the deployment. What is not given is looked for in the databases of the URI. */
export function withConnection(command: Command): Command {
  return command
    .addOption(
      new Option('--mongodb-uri <uri>', 'the deployment of producers and relay')
        .env('MONGODB_URI')
        .makeOptionMandatory(),
    )
    .addOption(
      new Option('--producers <databases>', 'databases with an outbox, by commas (default: all that are found)')
        .env('PRODUCERS')
        .argParser(names),
    )
    .addOption(
      new Option('--relay-db <name>', 'database of the relay (default: the one that is found)').env('RELAY_DB'),
    )
    .addOption(
      new Option(
        '--group-db <homes>',
        'where groups keep their data: group=database, or group=database@mongodb://… on another deployment, by commas (default: looked for)',
      )
        .env('GROUP_DBS')
        .argParser(groupHomes),
    )
    .addOption(archiveOption());
}

export function archiveOption(): Option {
  return new Option('--archive-folder <path>', 'place of the archive files, or s3://bucket/prefix').env(
    'ARCHIVE_FOLDER',
  );
}

/** Opens what the flags say, runs, and closes it. */
export async function connected<Result>(
  flags: ConnectionFlags,
  run: (connection: Connection) => Promise<Result>,
  { socketMs = 20_000 }: { readonly socketMs?: number } = {},
): Promise<Result> {
  const clients = new Map<string, MongoClient>();
  const clientOf = async (uri: string): Promise<MongoClient> => {
    const known = clients.get(uri) ?? (await connectMongo({ uri, appName: 'nightporter-cli', poolMax: 5, socketMs }));
    clients.set(uri, known);
    return known;
  };
  try {
    const client = await clientOf(flags.mongodbUri);
    const files = flags.archiveFolder === undefined ? {} : { files: await openArchive(flags.archiveFolder) };
    const producers = flags.producers?.map((database): ProducerPlace => ({ client, database, ...files }));
    const groups: GroupPlace[] = [];
    for (const { database, group, uri } of flags.groupDb ?? [])
      groups.push({ group, database, client: await clientOf(uri ?? flags.mongodbUri) });
    const found = await discoverDeployment(client, {
      groups,
      ...(producers === undefined ? {} : { producers }),
      ...(flags.relayDb === undefined ? {} : { relay: { client, database: flags.relayDb } }),
    });
    const deployment = { ...found, producers: found.producers.map((producer) => ({ ...files, ...producer })) };
    return await run({ client, deployment });
  } finally {
    for (const client of clients.values()) await client.close();
  }
}

export function names(text: string): readonly string[] {
  const found = text.split(',').map((name) => name.trim());
  if (found.includes('')) throw new InvalidArgumentError('expected names, separated by commas');
  return found;
}

/** Not commander's own error, which repeats what was given: there may be a password in it. */
function groupHomes(text: string, before: readonly GroupHome[] = []): readonly GroupHome[] {
  const homes = parseGroupHomes(text);
  if (homes !== null) return [...before, ...homes];
  const message = `--group-db, or GROUP_DBS, is not shown, since it may hold a password; accepted: ${GROUP_HOMES_ACCEPTED}.`;
  throw new NightporterError('NP_ACTION_INVALID', message);
}
