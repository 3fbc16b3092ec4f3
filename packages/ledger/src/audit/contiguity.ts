import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  REGISTRY,
  archivesOf,
  createFiledRows,
  durableDatabase,
  type RegistryDocument,
} from '@nightporter/mongo';
import { aggregateIdentity, aggregateKey, type AggregateKey } from '@nightporter/protocol';
import type { Collection, Db } from 'mongodb';
import type { GroupPlace, ProducerPlace } from '../questions/deployment.js';
import { headsOf } from './committed.js';
import type { Findings } from './findings.js';
import { positionsOf } from './group-batch.js';
import { holesOf, type Hole } from './holes.js';
import { mergeSorted } from './rows.js';

interface World {
  readonly producer: ProducerPlace;
  readonly database: Db;
  readonly groups: readonly (GroupPlace & { readonly topics: readonly string[] })[];
  readonly findings: Findings;
  /** Topics of which retention has deleted something. */
  readonly deletedTopics: ReadonlySet<string>;
}

export interface Contiguity {
  /** Rows in outbox, archive collections and files, of aggregates that have a head. */
  readonly present: number;
  readonly deleted: number;
}

/** Versions of one aggregate as outbox and archive collections have them; the server has counted. */
interface Counted {
  readonly _id: { readonly source: unknown; readonly aggregateType: unknown; readonly aggregateId: unknown };
  readonly rows: number;
  readonly lowest: number;
  readonly highest: number;
  readonly topic: string;
}

const BATCH = 500;

/**
 * Compares every head with the rows of its aggregate: versions 1, 2, 3 … up to the head, in outbox or archive, or deleted by retention and
 * settled by then. The server counts, aggregate by aggregate; only those that are not complete are looked at one by one.
 */
export async function auditContiguity(
  producer: ProducerPlace,
  { findings, groups }: Pick<World, 'findings' | 'groups'>,
): Promise<Contiguity> {
  const database = durableDatabase(producer.client, producer.database);
  const world: World = { producer, database, groups, findings, deletedTopics: await deletedTopics(database) };
  let present = 0;
  let deleted = 0;
  let aggregates = 0;
  for await (const batch of inBatches(await counted(database))) {
    const heads = await headsOf(producer, batch.map(keyOf));
    for (const entry of batch) {
      const key = keyOf(entry);
      const head = heads.get(key);
      if (head !== undefined) aggregates += 1;
      if (head === entry.rows && entry.lowest === 1 && entry.highest === head) {
        present += entry.rows;
        continue;
      }
      const found = await lookClosely(world, { key, head: head ?? 0, topic: entry.topic });
      present += found.present;
      deleted += found.deleted;
    }
  }
  const headsInAll = await database.collection(OUTBOX_COLLECTIONS.heads).countDocuments();
  if (headsInAll !== aggregates) {
    const found = await auditBareHeads(world);
    present += found.present;
    deleted += found.deleted;
  }
  return { present, deleted };
}

async function deletedTopics(database: Db): Promise<ReadonlySet<string>> {
  const groups = database.collection<RegistryDocument>(OUTBOX_COLLECTIONS.groups);
  const registry = await groups.findOne({ _id: REGISTRY });
  return new Set(Object.keys(registry?.deletedTo ?? {}));
}

async function counted(database: Db): Promise<AsyncIterable<Counted>> {
  const archives = await archivesOf(database);
  return database
    .collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox)
    .aggregate<Counted>(
      [
        ...archives.map(({ documents }) => ({ $unionWith: { coll: documents.collectionName } })),
        {
          $group: {
            _id: { source: '$source', aggregateType: '$aggregateType', aggregateId: '$aggregateId' },
            rows: { $sum: 1 },
            lowest: { $min: '$aggregateVersion' },
            highest: { $max: '$aggregateVersion' },
            topic: { $first: '$topic' },
          },
        },
      ],
      { allowDiskUse: true },
    )
    .batchSize(BATCH);
}

async function* inBatches<Item>(items: AsyncIterable<Item>): AsyncGenerator<readonly Item[]> {
  let batch: Item[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function keyOf({ _id: { aggregateId, aggregateType, source } }: Counted): AggregateKey {
  return aggregateKey({
    source: String(source),
    aggregateType: String(aggregateType),
    aggregateId: String(aggregateId),
  });
}

/** Reads the versions of one aggregate, wherever they are. */
async function lookClosely(
  world: World,
  { head, key, topic }: { readonly head: number; readonly key: AggregateKey; readonly topic: string | null },
): Promise<Contiguity> {
  const { producer, findings } = world;
  const { holes, present, above } = await holesOf(await versionsOf(world, key), head);
  if (above !== null) {
    const text = `Version ${above} is above the head of its aggregate, ${head}: no emit() has written it.`;
    findings.add({
      kind: 'foreign',
      producer: producer.database,
      group: null,
      eventId: null,
      aggregate: key,
      version: above,
      text,
    });
  }
  const [first] = holes;
  const mayBeDeleted = topic === null ? world.deletedTopics.size > 0 : world.deletedTopics.has(topic);
  // Retention deletes by age, so what it has deleted of an aggregate are its first versions.
  const gone = first?.from === 1 && mayBeDeleted ? first : null;
  for (const hole of holes) if (hole !== gone) findings.add(gapOf(world, key, hole));
  if (gone !== null) await auditDeleted(world, { key, topic, to: gone.to });
  return { present, deleted: gone === null ? 0 : gone.to };
}

function gapOf({ producer }: World, aggregate: AggregateKey, { from, to }: Hole) {
  const which = from === to ? `Version ${from} is` : `Versions ${from} to ${to} are`;
  const text = `${which} counted by the head, and in no outbox and no archive: somebody has deleted it. Restore it from a backup.`;
  return {
    kind: 'gap',
    producer: producer.database,
    group: null,
    eventId: null,
    aggregate,
    version: from,
    text,
  } as const;
}

async function versionsOf({ database, producer }: World, key: AggregateKey): Promise<AsyncGenerator<number>> {
  const identity = aggregateIdentity(key);
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const sources = [...archives, outbox].map((documents) => versionsIn(documents, identity));
  const filed = await createFiledRows(database, producer.files ?? null).versionsOf(key);
  return mergeSorted([...sources, numbersOf(filed)], (version) => version);
}

async function* versionsIn(documents: Collection<OutboxDocument>, identity: object): AsyncGenerator<number> {
  const cursor = documents
    .find(identity)
    .project<{ aggregateVersion: number }>({ aggregateVersion: 1 })
    .sort({ aggregateVersion: 1 });
  try {
    for await (const { aggregateVersion } of cursor) yield aggregateVersion;
  } finally {
    await cursor.close();
  }
}

// eslint wants an await in it; the sources of a merge are asynchronous.
async function* numbersOf(versions: readonly number[]): AsyncGenerator<number> {
  for (const version of versions) yield await Promise.resolve(version);
}

/** What is deleted must have been settled, or have been before the start, in every group of the topic. */
async function auditDeleted(
  { findings, groups, producer }: World,
  { key, to, topic }: { readonly key: AggregateKey; readonly to: number; readonly topic: string | null },
): Promise<void> {
  for (const home of groups) {
    if (topic !== null && !home.topics.includes(topic)) continue;
    const database = durableDatabase(home.client, home.database);
    const positions = await positionsOf(database.collection(CONSUMER_COLLECTIONS.positions), home.group, [key]);
    const { startVersion = 0, version = 0 } = positions.get(key) ?? {};
    const reached = Math.max(version, startVersion);
    // Without its topic it cannot be told whether the group reads it; one that has no position of it may not.
    if (reached >= to || (topic === null && reached === 0)) continue;
    const text = `Retention has deleted versions up to ${to}, and group ${home.group} is at ${reached}.`;
    const place = {
      producer: producer.database,
      group: home.group,
      eventId: null,
      aggregate: key,
      version: reached + 1,
    };
    findings.add({ kind: 'deleted-unsettled', ...place, text });
  }
}

/** Heads of which no row is in outbox or archive collections. */
async function auditBareHeads(world: World): Promise<Contiguity> {
  const { database } = world;
  const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const collections = [
    ...(await archivesOf(database)).map(({ documents }) => documents),
    database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox),
  ];
  let present = 0;
  let deleted = 0;
  for await (const batch of inBatches(heads.find().batchSize(BATCH))) {
    for (const { _id, version } of batch) {
      const key = _id as AggregateKey;
      const rows = await Promise.all(
        collections.map((documents) => documents.findOne(aggregateIdentity(key) as object, { projection: { _id: 1 } })),
      );
      if (rows.some((row) => row !== null)) continue;
      const found = await lookClosely(world, { key, head: version, topic: null });
      present += found.present;
      deleted += found.deleted;
    }
  }
  return { present, deleted };
}
