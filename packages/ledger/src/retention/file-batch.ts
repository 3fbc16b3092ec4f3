import type { OutboxDocument } from '@nightporter/contracts';
import {
  DATA_SUFFIX,
  MANIFEST_SUFFIX,
  archivePlace,
  catalogueOf,
  checksumOf,
  encodeArchive,
  type ArchiveFiles,
  type ArchiveManifest,
  type ArchivedFile,
} from '@nightporter/mongo';
import { aggregateKey } from '@nightporter/protocol';
import type { ClientSession } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { runAlone } from './alone.js';
import { IDS_AT_ONCE, deletePublished, type Moved } from './batch.js';
import { mayGo, type Rule } from './policy.js';
import { readStandings, readStandingsAlone } from './registry.js';
import type { Row } from './scan.js';
import type { RetentionWorld } from './world.js';

interface Filing {
  readonly files: ArchiveFiles;
  readonly batch: readonly Row[];
  readonly rule: Rule;
  readonly signal: AbortSignal | undefined;
}

const NOTHING: Moved = { rows: 0, bytes: 0 };

/**
 * Moves one batch into a file: the catalogue says `writing`, then come the file and its manifest, and once both are durable the transaction
 * that says `archived` and deletes the rows. So a row is in the outbox until it is in the catalogue, and a crash leaves at most a file that
 * counts for nothing, see left-files.ts. What changed between the file and the transaction ends it, and the file is removed, as it is when
 * the run was told to end while it waited for another transaction (null).
 */
export async function fileBatch(world: RetentionWorld, { batch, files, rule, signal }: Filing): Promise<Moved | null> {
  const standings = await readStandings(world.groups);
  const documents = await readBatch(
    world,
    batch.filter((row) => mayGo(row, standings, rule)),
  );
  if (documents.length === 0) return NOTHING;
  const entry = await writeFiles(world, files, documents);
  const operation = `retention of ${documents.length} rows of ${world.namespace} into ${entry._id}`;
  const work = (session: ClientSession): Promise<boolean> => commit(world, { documents, entry, rule, session });
  const isDone = await runAlone(world, { operation, work, signal });
  if (isDone !== true) {
    await removeFile(world, files, entry._id);
    return isDone === null ? null : NOTHING;
  }
  const bytes = new Map(batch.map((row) => [row._id, row.bytes]));
  return {
    rows: documents.length,
    bytes: documents.reduce((sum, { _id }) => sum + (bytes.get(_id) ?? 0), 0),
  };
}

/** Forgets a file for good. What a crash interrupts here is done again: it says `removing` until the end. */
export async function removeFile({ database }: RetentionWorld, files: ArchiveFiles, name: string): Promise<void> {
  await catalogueOf(database).updateOne({ _id: name, state: 'writing' }, { $set: { state: 'removing' } });
  await files.remove(manifestOf(name));
  await files.remove(name);
  await catalogueOf(database).deleteOne({ _id: name, state: 'removing' });
}

function manifestOf(name: string): string {
  return `${name.slice(0, -DATA_SUFFIX.length)}${MANIFEST_SUFFIX}`;
}

type Published = OutboxDocument & { readonly publishedAt: Date };

async function readBatch({ outbox }: RetentionWorld, rows: readonly Row[]): Promise<readonly Published[]> {
  const documents: OutboxDocument[] = [];
  for (let start = 0; start < rows.length; start += IDS_AT_ONCE) {
    const ids = rows.slice(start, start + IDS_AT_ONCE).map(({ _id }) => _id);
    documents.push(...(await outbox.find({ _id: { $in: ids }, status: 'PUBLISHED' }).toArray()));
  }
  const published = documents.filter((document): document is Published => document.publishedAt !== null);
  return published.sort((left, right) => left.publishedAt.getTime() - right.publishedAt.getTime());
}

async function writeFiles(
  { database, namespace }: RetentionWorld,
  files: ArchiveFiles,
  documents: readonly Published[],
): Promise<ArchivedFile> {
  const [from, to] = [documents[0]?.publishedAt ?? new Date(0), documents.at(-1)?.publishedAt ?? new Date(0)];
  const content = await encodeArchive(documents);
  const day = from.toISOString().slice(0, 10).replaceAll('-', '/');
  const folder = namespace.replaceAll(/[^A-Za-z0-9_-]/g, '_');
  const name = `${folder}/${day}/${from.getTime()}-${randomUUID()}${DATA_SUFFIX}`;
  const entry: ArchivedFile = {
    _id: name,
    state: 'archived',
    from,
    to,
    rows: documents.length,
    bytes: content.byteLength,
    sha256: checksumOf(content),
    topics: [...new Set(documents.map(({ topic }) => topic))],
    eventIds: documents.map(({ _id }) => _id),
    places: documents.map((document) => archivePlace(aggregateKey(document), document.aggregateVersion)),
  };
  await catalogueOf(database).insertOne({ _id: name, state: 'writing' });
  await files.write(name, content);
  await files.write(manifestOf(name), Buffer.from(`${JSON.stringify(manifest(namespace, entry), null, 2)}\n`, 'utf8'));
  return entry;
}

function manifest(outbox: string, { _id: file, bytes, from, rows, sha256, to, topics }: ArchivedFile): ArchiveManifest {
  const [publishedFrom, publishedTo] = [from.toISOString(), to.toISOString()];
  return { format: 'nightporter-archive-1', file, outbox, publishedFrom, publishedTo, rows, bytes, sha256, topics };
}

interface Commit {
  readonly documents: readonly Published[];
  readonly entry: ArchivedFile;
  readonly rule: Rule;
  readonly session: ClientSession;
}

/** False, with nothing written, when a row of the file is no longer as the file has it, or may no longer go. */
async function commit(world: RetentionWorld, { documents, entry, rule, session }: Commit): Promise<boolean> {
  const { groups, outbox } = world;
  const standings = await readStandingsAlone(groups, session);
  if (!documents.every((document) => mayGo(document, standings, rule))) return false;
  for (let start = 0; start < documents.length; start += IDS_AT_ONCE) {
    const part = documents.slice(start, start + IDS_AT_ONCE);
    const ids = part.map(({ _id }) => _id);
    const found = await outbox
      .find({ _id: { $in: ids }, status: 'PUBLISHED' }, { session, projection: { revision: 1 } })
      .toArray();
    const revisions = new Map(found.map(({ _id, revision }) => [_id, revision]));
    if (!part.every(({ _id, revision }) => revisions.get(_id) === revision)) return false;
  }
  const { _id, ...archived } = entry;
  const named = await catalogueOf(world.database).updateOne({ _id, state: 'writing' }, { $set: archived }, { session });
  if (named.matchedCount === 0) return false;
  for (let start = 0; start < documents.length; start += IDS_AT_ONCE) {
    const ids = documents.slice(start, start + IDS_AT_ONCE).map(({ _id }) => _id);
    await deletePublished(outbox, ids, session);
  }
  return true;
}
