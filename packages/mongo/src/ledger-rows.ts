import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import {
  aggregateIdentity,
  aggregateKey,
  isNightporterError,
  type AggregateKey,
  type EventId,
} from '@nightporter/protocol';
import type { Collection, Db, MongoClient } from 'mongodb';
import { FiledRows, archivePlace, catalogueOf, type FiledRow, type UnreadableFile } from './archive-catalogue.js';
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
  /** What is there of the `limit` versions above `afterVersion`, rising. */
  readAggregate(aggregate: AggregateKey, page: AggregatePage): Promise<AggregateRows>;
  /** Every row of several aggregates of one type, those of each aggregate by version. */
  readAggregates(aggregates: AggregateIds): Promise<ManyAggregateRows>;
}

export interface AggregateRows {
  readonly rows: readonly FiledRow[];
  /** Files that cannot be read from here, and the places of theirs that are on the page. */
  readonly unreadable: readonly UnreadableFile[];
}

export interface ManyAggregateRows {
  readonly documents: readonly OutboxDocument[];
  readonly unreadable: readonly UnreadableFile[];
  /** How many versions were committed, and are in neither outbox nor archive any more. */
  readonly deleted: number;
}

export interface AggregateIds {
  readonly source: string;
  readonly aggregateType: string;
  readonly ids: readonly string[];
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
    readAggregates: (aggregates) =>
      guarded(`reading ${aggregates.ids.length} aggregates in ${name}`, () =>
        readAggregates({ database, filed }, aggregates),
      ),
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
): Promise<AggregateRows> {
  const byVersion = new Map<number, FiledRow>();
  const identity = aggregateIdentity(aggregate);
  const read = async (documents: Collection<OutboxDocument>): Promise<void> => {
    const found = await documents
      .find({ ...identity, aggregateVersion: { $gt: afterVersion, $lte: afterVersion + limit } } as object)
      .toArray();
    for (const document of found)
      byVersion.set(document.aggregateVersion, { document, place: documents.collectionName });
  };
  // The outbox first, and only then what archives there are: a row that moves while this reads is seen twice rather than never.
  await read(database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox));
  for (const { documents } of await archivesOf(database)) await read(documents);
  const versions = Array.from({ length: limit }, (_, index) => afterVersion + 1 + index);
  const open = versions.filter((version) => !byVersion.has(version));
  const { rows, unreadable } = await filed.findPlaces(open.map((version) => archivePlace(aggregate, version)));
  for (const row of rows) byVersion.set(row.document.aggregateVersion, row);
  const rising = [...byVersion].sort(([left], [right]) => left - right);
  return { rows: rising.map(([, row]) => row), unreadable };
}

async function readAggregates(
  { database, filed }: { database: Db; filed: FiledRows },
  { aggregateType, ids, source }: AggregateIds,
): Promise<ManyAggregateRows> {
  const keyOf = (aggregateId: string): AggregateKey => aggregateKey({ source, aggregateType, aggregateId });
  // Heads first: what they count was committed, so what is found nowhere afterwards is gone.
  const heads = await database
    .collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads)
    .find({ _id: { $in: ids.map(keyOf) } }, { projection: { version: 1 } })
    .toArray();
  const missing = new Map<string, { readonly aggregateId: string }>();
  const idOf = new Map(ids.map((id) => [keyOf(id) as string, id]));
  for (const { _id: key, version: last } of heads)
    for (let version = 1; version <= last; version += 1)
      missing.set(archivePlace(key as AggregateKey, version), { aggregateId: idOf.get(key) ?? '' });
  const byPlace = new Map<string, OutboxDocument>();
  const take = (found: readonly OutboxDocument[]): void => {
    for (const document of found) {
      const place = archivePlace(aggregateKey(document), document.aggregateVersion);
      byPlace.set(place, document);
      missing.delete(place);
    }
  };
  const read = async (documents: Collection<OutboxDocument>, some: readonly string[]): Promise<void> => {
    take(await documents.find({ source, aggregateType, aggregateId: { $in: [...some] } }).toArray());
  };
  await read(database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ids);
  if (missing.size > 0) {
    for (const { documents } of await archivesOf(database))
      await read(documents, [...new Set([...missing.values()].map(({ aggregateId }) => aggregateId))]);
  }
  const { rows, unreadable } = await filed.findPlaces([...missing.keys()]);
  take(rows.map(({ document }) => document));
  const rising = [...byPlace.values()].sort((left, right) => left.aggregateVersion - right.aggregateVersion);
  const closed = unreadable.reduce((sum, { places }) => sum + places.length, 0);
  return { documents: rising, unreadable, deleted: missing.size - closed };
}
