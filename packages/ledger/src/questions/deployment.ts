import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  RELAY_COLLECTIONS,
  REGISTRY,
  guarded,
  positionId,
  type ArchiveFiles,
  type GroupDocument,
} from '@nightporter/mongo';
import type { AggregateKey } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';

/** A database, and the deployment that it is on. */
export interface Place {
  readonly client: MongoClient;
  readonly database: string;
}

/** Where a producer's outbox, archive and registered groups are. */
export interface ProducerPlace extends Place {
  /** Its archive files, where retention has written some. */
  readonly files?: ArchiveFiles;
}

/** Where a group keeps what it knows: inbox, positions, parked. */
export interface GroupPlace extends Place {
  readonly group: string;
}

/**
 * What questions are asked about. The producers' `groups` say which groups there are, and this says where those keep their data: a group
 * may be on another deployment than its producer. A registered group that is missing here is named wherever it matters.
 */
export interface Deployment {
  readonly producers: readonly ProducerPlace[];
  readonly groups: readonly GroupPlace[];
  /** The relay's own database; null where it is not known. */
  readonly relay: Place | null;
}

const SYSTEM = new Set(['admin', 'config', 'local']);

/**
 * Looks through the databases of one deployment: a producer has a collection `outbox_heads`, a group's database has documents of the group, and
 * the relay's database has `relay_leases`. Registered groups that have no document anywhere yet stay without a place. What is `known` is not
 * looked for. Rejects with NP_STORE_UNAVAILABLE, also where the user may not list databases.
 */
export async function discoverDeployment(client: MongoClient, known: Partial<Deployment> = {}): Promise<Deployment> {
  return guarded('looking through the databases', async () => {
    let listed: ReadonlyMap<string, ReadonlySet<string>> | null = null;
    const having = async (name: string): Promise<readonly string[]> => {
      listed ??= await collectionsOf(client);
      return [...listed].flatMap(([database, names]) => (names.has(name) ? [database] : []));
    };
    const producers =
      known.producers ??
      (await having(OUTBOX_COLLECTIONS.heads)).map((database): ProducerPlace => ({ client, database }));
    const [relayDatabase] = known.relay === undefined ? await having(RELAY_COLLECTIONS.leases) : [];
    const relay = known.relay ?? (relayDatabase === undefined ? null : { client, database: relayDatabase });
    const given = known.groups ?? [];
    const named = new Set(given.map(({ group }) => group));
    const wanted = (await registeredGroups(producers)).filter((group) => !named.has(group));
    const found: GroupPlace[] = [];
    for (const group of wanted) {
      const database = await homeOf(client, group, await having(CONSUMER_COLLECTIONS.positions));
      if (database !== null) found.push({ client, database, group });
    }
    return { producers, groups: [...given, ...found], relay };
  });
}

async function collectionsOf(client: MongoClient): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { databases } = await client.db('admin').admin().listDatabases({ nameOnly: true });
  const names = databases.map(({ name }) => name).filter((name) => !SYSTEM.has(name));
  const listed = await Promise.all(
    names.sort().map(async (name): Promise<[string, ReadonlySet<string>]> => {
      const found = await client.db(name).listCollections({}, { nameOnly: true }).toArray();
      return [name, new Set(found.map((collection) => collection.name))];
    }),
  );
  return new Map(listed);
}

async function registeredGroups(producers: readonly Place[]): Promise<readonly string[]> {
  const names = new Set<string>();
  for (const { client, database } of producers) {
    const groups = client.db(database).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
    const found = await groups.find({ _id: { $ne: REGISTRY } }, { projection: { _id: 1 } }).toArray();
    for (const { _id } of found) names.add(_id);
  }
  return [...names].sort();
}

/** By the ids of positions and parked messages, which begin with the group: no other index leads to a group. */
async function homeOf(client: MongoClient, group: string, databases: readonly string[]): Promise<string | null> {
  const first = positionId(group, '' as AggregateKey);
  // The character after the one that ends a group's name.
  const end = `${first.slice(0, -1)}}`;
  for (const database of databases) {
    for (const collection of [CONSUMER_COLLECTIONS.positions, CONSUMER_COLLECTIONS.parked]) {
      const documents = client.db(database).collection<{ _id: string }>(collection);
      const found = await documents.findOne({ _id: { $gte: first, $lt: end } }, { projection: { _id: 1 } });
      if (found !== null) return database;
    }
  }
  return null;
}

/** The place of a group; null where it is not known. */
export function placeOfGroup({ groups }: Deployment, group: string): GroupPlace | null {
  return groups.find((place) => place.group === group) ?? null;
}
