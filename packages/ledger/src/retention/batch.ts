import type { OutboxDocument } from '@nightporter/contracts';
import { bucketOf, ensureArchiveBucket } from '@nightporter/mongo';
import { NightporterError, type EventId } from '@nightporter/protocol';
import type { ClientSession, Collection } from 'mongodb';
import { runAlone } from './alone.js';
import { mayGo, type Rule } from './policy.js';
import { readStandingsAlone, recordDeleted } from './registry.js';
import type { Row } from './scan.js';
import type { RetentionWorld } from './world.js';

/** Ids of one statement: more of them are a scan on SecantusDB. */
export const IDS_AT_ONCE = 200;

export interface Moved {
  readonly rows: number;
  readonly bytes: number;
}

interface Moving {
  readonly batch: readonly Row[];
  readonly rule: Rule;
  readonly signal: AbortSignal | undefined;
}

/**
 * Moves one batch, or deletes it, in one transaction: what has meanwhile become forbidden stays, what is gone already is not counted. Null
 * when it was told to end while it waited for another transaction.
 */
export async function moveBatch(world: RetentionWorld, { batch, rule, signal }: Moving): Promise<Moved | null> {
  const archive = await archiveOf(world, batch);
  const operation = `retention of ${batch.length} rows of ${world.namespace}`;
  const work = (session: ClientSession): Promise<Moved> => moveOnce(world, { archive, batch, rule, session });
  return runAlone(world, { operation, work, signal });
}

interface Move {
  /** Null: they are deleted. */
  readonly archive: Collection<OutboxDocument> | null;
  readonly batch: readonly Row[];
  readonly rule: Rule;
  readonly session: ClientSession;
}

async function moveOnce(world: RetentionWorld, { archive, batch, rule, session }: Move): Promise<Moved> {
  const standings = await readStandingsAlone(world.groups, session);
  const allowed = batch.filter((row) => mayGo(row, standings, rule));
  const gone: Row[] = [];
  for (let start = 0; start < allowed.length; start += IDS_AT_ONCE) {
    const part = allowed.slice(start, start + IDS_AT_ONCE);
    gone.push(...(await movePart(world.outbox, archive, part, session)));
  }
  if (archive === null) await recordDeleted(world.groups, gone, session);
  return { rows: gone.length, bytes: gone.reduce((bytes, row) => bytes + row.bytes, 0) };
}

async function movePart(
  outbox: Collection<OutboxDocument>,
  archive: Collection<OutboxDocument> | null,
  part: readonly Row[],
  session: ClientSession,
): Promise<readonly Row[]> {
  const filter = { _id: { $in: part.map(({ _id }) => _id) }, status: 'PUBLISHED' as const };
  const options = archive === null ? { session, projection: { _id: 1 } } : { session };
  const documents = await outbox.find(filter, options).toArray();
  if (documents.length === 0) return [];
  if (archive !== null) await copyInto(archive, documents, session);
  await deletePublished(
    outbox,
    documents.map(({ _id }) => _id),
    session,
  );
  const found = new Set(documents.map(({ _id }) => _id));
  return part.filter(({ _id }) => found.has(_id));
}

/** Deletes exactly these rows; a row that has changed since the transaction looked at it ends the transaction. */
export async function deletePublished(
  outbox: Collection<OutboxDocument>,
  ids: readonly EventId[],
  session: ClientSession,
): Promise<void> {
  const { deletedCount } = await outbox.deleteMany({ _id: { $in: [...ids] }, status: 'PUBLISHED' }, { session });
  if (deletedCount === ids.length) return;
  const message = `${ids.length - deletedCount} of ${ids.length} rows of ${outbox.namespace} changed under retention.`;
  throw new NightporterError('NP_TRANSACTION_CONFLICT', message);
}

/** What is there already, after a restored backup for instance, is not copied again. */
async function copyInto(
  archive: Collection<OutboxDocument>,
  documents: readonly OutboxDocument[],
  session: ClientSession,
): Promise<void> {
  const ids = documents.map(({ _id }) => _id);
  const known = await archive.find({ _id: { $in: ids } }, { session, projection: { _id: 1 } }).toArray();
  const knownIds = new Set(known.map(({ _id }) => _id));
  const missing = documents.filter(({ _id }) => !knownIds.has(_id));
  if (missing.length > 0) await archive.insertMany(missing, { session });
}

/** Collections cannot be created with their indexes inside of a transaction. */
async function archiveOf(
  { client, database, destination }: RetentionWorld,
  [first]: readonly Row[],
): Promise<Move['archive']> {
  if (destination.kind !== 'collections' || first === undefined) return null;
  const { name } = bucketOf(first.publishedAt, destination.bucket);
  await ensureArchiveBucket(client, database.databaseName, name);
  return database.collection<OutboxDocument>(name);
}
