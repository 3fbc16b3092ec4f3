import type { AggregatePlace, LedgerAnswer, LedgerPlace } from '@nightporter/consumer';
import {
  digestOf,
  envelopeOf,
  type OutboxDocument,
  type OutboxHeadDocument,
  type PublicationForm,
} from '@nightporter/contracts';
import { aggregateIdentity, aggregateKey, namespace, type AggregateKey, type EventId } from '@nightporter/protocol';
import type { Collection, Db, Filter } from 'mongodb';
import type { FiledRows } from './archive-catalogue.js';
import { archivesOf } from './archives.js';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { outboxRow } from './outbox-rows.js';

type Documents = Collection<OutboxDocument>;

export interface VersionReading {
  readonly database: Db;
  readonly filed: FiledRows;
  readonly archives: ArchiveSearch;
}

/** What the ledger has at each place. Those whose event was seen are read together; each other costs a look-up. */
export async function readVersions(
  reading: VersionReading,
  places: readonly LedgerPlace[],
): Promise<readonly LedgerAnswer[]> {
  const seen = await findSeen(reading, places);
  const open = places.filter((place) => !seen.has(place));
  // Heads first: what they count was committed, so a row that is found nowhere afterwards is gone.
  const heads = open.length === 0 ? new Map<string, number>() : await headsOf(reading, open);
  const answers: LedgerAnswer[] = [];
  for (const place of places) {
    const known = seen.get(place) ?? null;
    const isCommitted = known !== null || (heads.get(place.aggregate) ?? 0) >= place.version;
    const document = known ?? (isCommitted ? await findVersion(reading, place) : null);
    if (document !== null) answers.push(answerOf(reading, document));
    else answers.push({ kind: isCommitted ? 'deleted' : 'not-committed' });
  }
  return answers;
}

/** The rows of the events that were seen, where they still stand at the place where they were. */
async function findSeen(
  { archives, database, filed }: VersionReading,
  places: readonly LedgerPlace[],
): Promise<ReadonlyMap<LedgerPlace, OutboxDocument>> {
  const ids = places.flatMap(({ eventId }) => (eventId === undefined ? [] : [eventId]));
  const found = new Map<EventId, OutboxDocument>();
  const take = async (find: (left: readonly EventId[]) => Promise<readonly OutboxDocument[]>): Promise<void> => {
    const left = ids.filter((id) => !found.has(id));
    if (left.length === 0) return;
    for (const document of await find(left)) found.set(document._id, document);
  };
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  await take((left) => outbox.find({ _id: { $in: [...left] } }).toArray());
  await take((left) => archives.findEvents(left));
  await take((left) => filed.findEvents(left));
  return new Map(
    places.flatMap((place) => {
      const document = place.eventId === undefined ? undefined : found.get(place.eventId);
      const isThere = document?.aggregateVersion === place.version && aggregateKey(document) === place.aggregate;
      return document !== undefined && isThere ? [[place, document] as const] : [];
    }),
  );
}

async function headsOf(
  { database }: VersionReading,
  places: readonly AggregatePlace[],
): Promise<ReadonlyMap<string, number>> {
  const ids: string[] = [...new Set(places.map(({ aggregate }): AggregateKey => aggregate))];
  const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const found = await heads.find({ _id: { $in: ids } }, { projection: { version: 1 } }).toArray();
  return new Map(found.map((head) => [head._id, head.version]));
}

/** Outbox, archive, outbox: a row that moves into the archive in between is seen in one of them. */
async function findVersion(
  { archives, database, filed }: VersionReading,
  { aggregate, version }: AggregatePlace,
): Promise<OutboxDocument | null> {
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const filter = { ...aggregateIdentity(aggregate), aggregateVersion: version };
  return (
    (await outbox.findOne(filter)) ??
    (await archives.findOne(filter)) ??
    (await filed.findVersion(aggregate, version)) ??
    (await outbox.findOne(filter))
  );
}

/** Looks for rows in every archive, first where the last ones were: who asks for many asks for neighbours. */
export class ArchiveSearch {
  readonly #database: Db;
  #known: readonly Documents[] = [];

  constructor(database: Db) {
    this.#database = database;
  }

  async findOne(filter: Filter<OutboxDocument>): Promise<OutboxDocument | null> {
    return (await this.#find((archive) => archive.find(filter).limit(1).toArray(), 1))[0] ?? null;
  }

  /** Those of the events that lie in archives. */
  findEvents(eventIds: readonly EventId[]): Promise<readonly OutboxDocument[]> {
    return this.#find((archive) => archive.find({ _id: { $in: [...eventIds] } }).toArray(), eventIds.length);
  }

  /** Looks until `count` are found. */
  async #find(
    look: (archive: Documents) => Promise<readonly OutboxDocument[]>,
    count: number,
  ): Promise<readonly OutboxDocument[]> {
    const found: OutboxDocument[] = [];
    await this.#findIn(this.#known, { look, count, found });
    if (found.length >= count) return found;
    // Asked anew: a row may have moved just now, into an archive that was not there when the others were listed.
    const listed = (await archivesOf(this.#database)).map(({ documents }) => documents);
    const names = new Set(listed.map(({ collectionName }) => collectionName));
    const known = new Set(this.#known.map(({ collectionName }) => collectionName));
    const fresh = listed.filter(({ collectionName }) => !known.has(collectionName));
    // What has aged out is forgotten.
    this.#known = [...this.#known.filter(({ collectionName }) => names.has(collectionName)), ...fresh];
    await this.#findIn(fresh, { look, count, found });
    return found;
  }

  async #findIn(
    archives: readonly Documents[],
    {
      look,
      count,
      found,
    }: { look: (archive: Documents) => Promise<readonly OutboxDocument[]>; count: number; found: OutboxDocument[] },
  ): Promise<void> {
    for (const archive of archives) {
      if (found.length >= count) return;
      const here = await look(archive);
      if (here.length === 0) continue;
      found.push(...here);
      this.#known = [archive, ...this.#known.filter((other) => other !== archive)];
    }
  }
}

function answerOf({ database }: VersionReading, document: OutboxDocument): LedgerAnswer {
  if (document.status === 'DEAD') return { kind: 'dead' };
  const { publishedAt, status } = document;
  if (status !== 'PUBLISHED' || !(publishedAt instanceof Date)) return { kind: 'unpublished' };
  const row = outboxRow(namespace(`${database.databaseName}.${OUTBOX_COLLECTIONS.outbox}`), document, null);
  const form: PublicationForm = document.publication?.form ?? row.form;
  const envelope = envelopeOf(row, form);
  return {
    kind: 'published',
    publishedAtMs: publishedAt.getTime(),
    event: {
      envelope,
      aggregate: aggregateKey(row),
      topic: row.topic,
      form,
      // As the relay sends it: the digest of an original was made when it was written.
      digest: form === 'original' ? row.digest : digestOf(envelope),
      messageId: document.publication?.messageId ?? `ledger:${row.eventId}`,
      ...(row.createdAtMs === undefined ? {} : { createdAtMs: row.createdAtMs }),
    },
  };
}
