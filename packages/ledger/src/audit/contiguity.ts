import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  REGISTRY,
  archivesOf,
  createFiledRows,
  durableDatabase,
  type PositionDocument,
  type RegistryDocument,
} from '@nightporter/mongo';
import { aggregateIdentity, type AggregateKey } from '@nightporter/protocol';
import type { Collection, Db } from 'mongodb';
import type { GroupPlace, ProducerPlace } from '../questions/deployment.js';
import { headsOf } from './committed.js';
import type { Findings } from './findings.js';
import { positionsOf } from './group-batch.js';
import { holesOf, type Hole } from './holes.js';
import { inBatches, mergeSorted } from './ordered.js';
import { havingRows, presentVersions, topicsOfTypes, withVersions, type Present } from './version-streams.js';

interface World {
  readonly producer: ProducerPlace;
  readonly database: Db;
  readonly groups: readonly (GroupPlace & { readonly topics: readonly string[] })[];
  readonly findings: Findings;
  readonly filed: ReturnType<typeof createFiledRows>;
  /** Topics of which retention has deleted something. */
  readonly deletedTopics: ReadonlySet<string>;
}

export interface Contiguity {
  /** Rows in outbox, archive collections and files, of aggregates that have a head. */
  readonly present: number;
  readonly deleted: number;
}

const BATCH = 500;

/**
 * Compares every head with the rows of its aggregate: versions 1, 2, 3 … up to the head, in outbox or archive, or deleted by retention and
 * settled by then. Rows come as one ordered stream; only what is neither complete nor explained by retention is looked at one by one.
 */
export async function auditContiguity(
  producer: ProducerPlace,
  { findings, groups }: Pick<World, 'findings' | 'groups'>,
): Promise<Contiguity> {
  const database = durableDatabase(producer.client, producer.database);
  const filed = createFiledRows(database, producer.files ?? null);
  const world: World = { producer, database, filed, groups, findings, deletedTopics: await deletedTopics(database) };
  const sum = { present: 0, deleted: 0 };
  let aggregates = 0;
  for await (const batch of inBatches(presentVersions(database), BATCH)) {
    const heads = await headsOf(
      producer,
      batch.map(({ key }) => key),
    );
    aggregates += heads.size;
    await auditBatch(world, { batch, heads, sum });
  }
  const headsInAll = await database.collection(OUTBOX_COLLECTIONS.heads).countDocuments();
  if (headsInAll !== aggregates) await auditBareHeads(world, sum);
  return sum;
}

async function deletedTopics(database: Db): Promise<ReadonlySet<string>> {
  const groups = database.collection<RegistryDocument>(OUTBOX_COLLECTIONS.groups);
  const registry = await groups.findOne({ _id: REGISTRY });
  return new Set(Object.keys(registry?.deletedTo ?? {}));
}

interface Batch {
  readonly batch: readonly Present[];
  readonly heads: ReadonlyMap<string, number>;
  readonly sum: { present: number; deleted: number };
}

async function auditBatch(world: World, { batch, heads, sum }: Batch): Promise<void> {
  const incomplete = batch.filter(({ key, runs }) => {
    const head = heads.get(key);
    if (head === undefined || !isComplete(runs, head)) return true;
    sum.present += head;
    return false;
  });
  if (incomplete.length === 0) return;
  const inFiles = await world.filed.versionsAmong(new Set(incomplete.map(({ key }) => key)));
  const deleted: Deleted[] = [];
  const doubtful: Present[] = [];
  for (const entry of incomplete) {
    const head = heads.get(entry.key) ?? 0;
    const runs = withVersions(entry.runs, inFiles.get(entry.key) ?? []);
    const to = deletedTo(world, { ...entry, runs }, head);
    if (isComplete(runs, head)) sum.present += head;
    else if (to === null) doubtful.push(entry);
    else deleted.push({ entry, present: head - to, to });
  }
  const unsettled = await unsettledAmong(world, deleted);
  for (const { entry, present, to } of deleted) {
    if (unsettled.has(entry.key)) doubtful.push(entry);
    else [sum.present, sum.deleted] = [sum.present + present, sum.deleted + to];
  }
  for (const { key, topic } of doubtful) {
    const found = await lookClosely(world, { key, head: heads.get(key) ?? 0, topic });
    [sum.present, sum.deleted] = [sum.present + found.present, sum.deleted + found.deleted];
  }
}

function isComplete(runs: readonly Hole[], head: number): boolean {
  const [run] = runs;
  return run !== undefined && runs.length === 1 && run.from === 1 && run.to === head;
}

/** The version up to which retention has deleted, where that alone explains what is not there; null where it does not. */
function deletedTo({ deletedTopics: topics }: World, { runs, topic }: Present, head: number): number | null {
  const mayBe = topic === null ? topics.size > 0 : topics.has(topic);
  const [run] = runs;
  if (!mayBe || head === 0) return null;
  if (run === undefined) return head;
  return runs.length === 1 && run.from > 1 && run.to === head ? run.from - 1 : null;
}

interface Deleted {
  readonly entry: Present;
  readonly present: number;
  /** Versions up to it are not there. */
  readonly to: number;
}

/** Aggregates of which a group that reads them has not got over what is deleted. */
async function unsettledAmong({ groups }: World, deleted: readonly Deleted[]): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const home of groups) {
    const read = deleted.filter(({ entry: { topic } }) => topic === null || home.topics.includes(topic));
    if (read.length === 0) continue;
    const documents = durableDatabase(home.client, home.database).collection<PositionDocument>(
      CONSUMER_COLLECTIONS.positions,
    );
    const positions = await positionsOf(
      documents,
      home.group,
      read.map(({ entry }) => entry.key),
    );
    for (const { entry, to } of read)
      if (!isPast(positions.get(entry.key), { to, topic: entry.topic })) found.add(entry.key);
  }
  return found;
}

/** Without its topic it cannot be told whether the group reads it; one that has no position of it may not. */
function isPast(
  position: PositionDocument | undefined,
  { to, topic }: { readonly to: number; readonly topic: string | null },
): boolean {
  const reached = reachedBy(position);
  return reached >= to || (topic === null && reached === 0);
}

function reachedBy(position: PositionDocument | undefined): number {
  return Math.max(position?.version ?? 0, position?.startVersion ?? 0);
}

/** Reads the versions of one aggregate, wherever they are. */
async function lookClosely(
  world: World,
  { head, key, topic }: { readonly head: number; readonly key: AggregateKey; readonly topic: string | null },
): Promise<Contiguity> {
  const { producer, findings } = world;
  const { holes, present, above } = await holesOf(await versionsOf(world, key), head);
  if (above !== null) {
    // An aggregate goes on while it is looked at: its head was read before its rows.
    const now = (await headsOf(producer, [key])).get(key) ?? 0;
    if (now > head) return lookClosely(world, { head: now, key, topic });
    const text = `Version ${above} is above the head of its aggregate, ${head}: no emit() has written it.`;
    findings.add({
      kind: 'foreign',
      producer: producer.database,
      group: null,
      eventId: null,
      aggregate: key,
      version: above,
      text,
      mend: `Delete it from ${producer.database}.${OUTBOX_COLLECTIONS.outbox}, and stop whoever writes there`,
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
  const text = `${which} counted by the head, and in no outbox and no archive: somebody has deleted it.`;
  return {
    kind: 'gap',
    producer: producer.database,
    group: null,
    eventId: null,
    aggregate,
    version: from,
    text,
    mend: `Restore it to ${producer.database}.${OUTBOX_COLLECTIONS.outbox} from a backup`,
  } as const;
}

async function versionsOf({ database, filed }: World, key: AggregateKey): Promise<AsyncGenerator<number>> {
  const identity = aggregateIdentity(key);
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const sources = [...archives, outbox].map((documents) => versionsIn(documents, identity));
  return mergeSorted([...sources, numbersOf(await filed.versionsOf(key))], (left, right) => left - right);
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
    const position = positions.get(key);
    if (isPast(position, { to, topic })) continue;
    const reached = reachedBy(position);
    const text = `Retention has deleted versions up to ${to}, and group ${home.group} is at ${reached}.`;
    const place = {
      producer: producer.database,
      group: home.group,
      eventId: null,
      aggregate: key,
      version: reached + 1,
    };
    findings.add({ kind: 'deleted-unsettled', ...place, text, mend: null });
  }
}

/** Heads of which no row is in outbox or archive collections. */
async function auditBareHeads(world: World, sum: Batch['sum']): Promise<void> {
  const { database, deletedTopics: topics } = world;
  const topicOf = topicsOfTypes(database);
  const cursor = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads).find().batchSize(BATCH);
  for await (const heads of inBatches(cursor, BATCH)) {
    const versions = new Map(heads.map(({ _id, version }) => [_id as AggregateKey, version as number]));
    const withRows = await havingRows(database, [...versions.keys()]);
    const batch: Present[] = [];
    for (const key of versions.keys()) {
      if (withRows.has(key)) continue;
      const topic = await topicOf(key);
      // Whether a group has read the topic since those events, the topic alone does not tell.
      batch.push({ key, topic: topic === null || topics.has(topic) ? null : topic, runs: [] });
    }
    await auditBatch(world, { batch, heads: versions, sum });
  }
}
