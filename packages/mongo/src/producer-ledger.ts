import type { ProducerLedger, PublishedPage } from '@nightporter/consumer';
import type { OutboxDocument } from '@nightporter/contracts';
import { aggregateKey } from '@nightporter/protocol';
import type { Collection, Condition, Db, Filter, MongoClient } from 'mongodb';
import { FiledRows } from './archive-catalogue.js';
import type { ArchiveFiles } from './archive-files.js';
import { archivesOf } from './archives.js';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import { createDatabaseClock, type DatabaseClock } from './database-clock.js';
import { guarded } from './driver-errors.js';
import { ArchiveSearch, readVersions } from './ledger-versions.js';

/** Outbox, or an archive: published rows moved out of it. */
type Documents = Collection<OutboxDocument>;

interface Reading {
  readonly database: Db;
  readonly filed: FiledRows;
  readonly clock: DatabaseClock;
  readonly archives: ArchiveSearch;
}

export interface ProducerLedgerOptions {
  readonly client: MongoClient;
  /** The producer's. */
  readonly database: string;
  /** Where archive files are, if there are any. Without it a row that lies in one is refused with NP_ARCHIVE_FAILED. */
  readonly files?: ArchiveFiles;
}

/**
 * Reads one producer's outbox and archive on their indexes; the archive is one collection, one per time bucket with a suffix, or files.
 * Besides what the port says it rejects with NP_ARCHIVE_FAILED where a file cannot be read: never is its row called deleted.
 */
export function createProducerLedger({ client, database: name, files }: ProducerLedgerOptions): ProducerLedger {
  const database = durableDatabase(client, name);
  const filed = new FiledRows(database, files ?? null);
  const archives = new ArchiveSearch(database);
  const reading: Reading = { database, filed, archives, clock: createDatabaseClock(client) };
  const place = `the ledger of ${name}`;
  return {
    readPublished: (request) => guarded(`reading published rows of ${place}`, () => readPublished(reading, request)),
    readVersions: (places) =>
      guarded(`reading ${places.length} versions in ${place}`, () => readVersions(reading, places)),
    countPublished: (afterMs) => guarded(`counting published rows of ${place}`, () => countPublished(reading, afterMs)),
  };
}

/** Of a ledger that takes longer than this to count, nobody needs to know. */
const COUNT_MS_MAX = 5_000;

async function countPublished({ database, filed }: Reading, afterMs: number): Promise<number> {
  const publishedAt = { $gt: new Date(afterMs) };
  const options = { maxTimeMS: COUNT_MS_MAX };
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  let count = await outbox.countDocuments({ status: 'PUBLISHED', publishedAt }, options);
  for (const { documents, toMs } of await archivesOf(database)) {
    if (toMs > afterMs) count += await documents.countDocuments({ publishedAt }, options);
  }
  return count + (await filed.count(afterMs));
}

type ReadPublished = Parameters<ProducerLedger['readPublished']>[0];
type Reference = Pick<
  OutboxDocument,
  '_id' | 'source' | 'aggregateType' | 'aggregateId' | 'aggregateVersion' | 'topic'
> & { readonly publishedAt: Date };

async function readPublished({ clock, database, filed }: Reading, request: ReadPublished): Promise<PublishedPage> {
  // The time first: what is marked later than this question may be missing in the answers.
  const untilMs = (await clock.read()).getTime() - request.lagMs;
  const range = { afterMs: request.afterMs, untilMs, limit: request.limit };
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const pages: { rows: readonly Reference[]; toMs: number }[] = [
    await readRange(outbox, { ...range, isArchive: false }),
  ];
  if (request.withArchive) {
    pages.push(await filed.readRange(range));
    for (const archive of await archivesOf(database)) {
      // What lies behind the end of the page is for a later one.
      const endMs = Math.min(untilMs, ...pages.map((page) => page.toMs));
      if (archive.toMs <= range.afterMs || archive.fromMs > endMs) continue;
      pages.push(await readRange(archive.documents, { ...range, isArchive: true }));
    }
  }
  const toMs = Math.max(request.afterMs, Math.min(untilMs, ...pages.map((page) => page.toMs)));
  const rows = new Map(pages.flatMap((page) => page.rows.map((row) => [row._id, row])));
  const wanted = [...rows.values()].filter(
    ({ publishedAt, topic }) => publishedAt.getTime() <= toMs && request.topics.includes(topic),
  );
  return {
    rows: wanted
      .sort((left, right) => left.publishedAt.getTime() - right.publishedAt.getTime())
      .map((row) => ({ eventId: row._id, aggregate: aggregateKey(row), version: row.aggregateVersion })),
    toMs,
    isEnd: toMs >= untilMs,
  };
}

interface Range {
  readonly afterMs: number;
  readonly untilMs: number;
  readonly limit: number;
  readonly isArchive: boolean;
}

const PROJECTION = {
  source: 1,
  aggregateType: 1,
  aggregateId: 1,
  aggregateVersion: 1,
  topic: 1,
  publishedAt: 1,
} as const;

/**
 * A range of the index (status, publishedAt), or (publishedAt) of an archive, without the payloads. Topics are sorted out afterwards, so that a
 * page costs what its limit says. The rows of a page's last moment are read once more and all of them: a mark gives many rows one moment.
 */
async function readRange(
  documents: Documents,
  { afterMs, isArchive, limit, untilMs }: Range,
): Promise<{ rows: readonly Reference[]; toMs: number }> {
  if (untilMs <= afterMs) return { rows: [], toMs: untilMs };
  const find = (publishedAt: Condition<Date | null>) => {
    const filter: Filter<OutboxDocument> = isArchive ? { publishedAt } : { status: 'PUBLISHED', publishedAt };
    return documents.find(filter).project<Reference>(PROJECTION);
  };
  const page = await find({ $gt: new Date(afterMs), $lte: new Date(untilMs) })
    .sort({ publishedAt: 1 })
    .limit(limit)
    .toArray();
  const last = page.at(-1);
  if (last === undefined || page.length < limit) return { rows: page, toMs: untilMs };
  const toMs = last.publishedAt.getTime();
  const before = page.filter(({ publishedAt }) => publishedAt.getTime() < toMs);
  return { rows: [...before, ...(await find(last.publishedAt).toArray())], toMs };
}
