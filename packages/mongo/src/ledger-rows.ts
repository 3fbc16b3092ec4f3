import type { OutboxDocument } from '@nightporter/contracts';
import { aggregateIdentity, isNightporterError, type AggregateKey, type EventId } from '@nightporter/protocol';
import type { Db, MongoClient } from 'mongodb';
import { FiledRows, catalogueOf } from './archive-catalogue.js';
import type { ArchiveFiles } from './archive-files.js';
import { archivesOf } from './archives.js';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import { guarded } from './driver-errors.js';

/** A row of the outbox, and where it lies: the name of a collection, or of an archive file. */
export type LedgerRow =
  | { readonly kind: 'row'; readonly document: OutboxDocument; readonly place: string }
  /** It lies in a file that cannot be read from here. */
  | { readonly kind: 'unreadable'; readonly place: string; readonly reason: string };

export interface LedgerRows {
  /** Null where neither outbox nor archive has the event. */
  findEvent(eventId: EventId): Promise<LedgerRow | null>;
  /** What is there of versions above `afterVersion`, rising, `limit` at most. Versions that lie in files that cannot be read are left out. */
  readAggregate(aggregate: AggregateKey, page: AggregatePage): Promise<readonly LedgerRow[]>;
}

export interface AggregatePage {
  readonly afterVersion: number;
  readonly limit: number;
}

export interface LedgerRowsOptions {
  readonly client: MongoClient;
  /** The producer's. */
  readonly database: string;
  readonly files?: ArchiveFiles | null;
}

/** Finds rows for people who ask about one event or one aggregate, wherever retention has put them. Each rejects with NP_STORE_UNAVAILABLE. */
export function createLedgerRows({ client, database: name, files = null }: LedgerRowsOptions): LedgerRows {
  const database = durableDatabase(client, name);
  const filed = new FiledRows(database, files);
  return {
    findEvent: (eventId) =>
      guarded(`looking for event ${eventId} in ${name}`, async () => {
        // Outbox, archives, outbox: a row that moves in between is seen in one of them.
        return (
          (await findStored(database, eventId)) ??
          (await findFiled({ database, filed, eventId })) ??
          (await findStored(database, eventId))
        );
      }),
    readAggregate: (aggregate, page) =>
      guarded(`reading ${aggregate} in ${name}`, () => readAggregate({ database, filed, aggregate }, page)),
  };
}

async function findStored(database: Db, eventId: EventId): Promise<LedgerRow | null> {
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  for (const documents of [database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ...archives]) {
    const document = await documents.findOne({ _id: eventId });
    if (document !== null) return { kind: 'row', document, place: documents.collectionName };
  }
  return null;
}

async function findFiled(search: { database: Db; filed: FiledRows; eventId: EventId }): Promise<LedgerRow | null> {
  const { database, eventId, filed } = search;
  const entry = await catalogueOf(database).findOne(
    { eventIds: eventId, state: 'archived' },
    { projection: { _id: 1 } },
  );
  if (entry === null) return null;
  try {
    const document = await filed.findEvent(eventId);
    return document === null ? null : { kind: 'row', document, place: entry._id };
  } catch (error) {
    if (!isNightporterError(error, 'NP_ARCHIVE_FAILED')) throw error;
    return { kind: 'unreadable', place: entry._id, reason: error.message };
  }
}

async function readAggregate(
  { aggregate, database, filed }: { aggregate: AggregateKey; database: Db; filed: FiledRows },
  { afterVersion, limit }: AggregatePage,
): Promise<readonly LedgerRow[]> {
  const byVersion = new Map<number, LedgerRow>();
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  const identity = aggregateIdentity(aggregate);
  // The outbox last: a row that moves while this reads is seen twice rather than never.
  for (const documents of [...archives, database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox)]) {
    const found = await documents
      .find({ ...identity, aggregateVersion: { $gt: afterVersion } } as object)
      .sort({ aggregateVersion: 1 })
      .limit(limit)
      .toArray();
    for (const document of found)
      byVersion.set(document.aggregateVersion, { kind: 'row', document, place: documents.collectionName });
  }
  for (const { document, place } of await filed.findVersions(aggregate, { afterVersion, limit }))
    byVersion.set(document.aggregateVersion, { kind: 'row', document, place });
  const rising = [...byVersion].sort(([left], [right]) => left - right);
  return rising.slice(0, limit).map(([, row]) => row);
}
