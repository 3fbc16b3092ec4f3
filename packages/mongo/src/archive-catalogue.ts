import type { OutboxDocument } from '@nightporter/contracts';
import {
  NightporterError,
  aggregateKey,
  isNightporterError,
  type AggregateKey,
  type EventId,
} from '@nightporter/protocol';
import type { Collection, Db } from 'mongodb';
import { decodeArchive } from './archive-encoding.js';
import type { ArchiveFileDocument, ArchiveFiles, ArchivedFile, PublishedDocument } from './archive-files.js';
import { OUTBOX_COLLECTIONS } from './collections.js';

export function catalogueOf(database: Db): Collection<ArchiveFileDocument> {
  return database.collection<ArchiveFileDocument>(OUTBOX_COLLECTIONS.files);
}

/** What a version is found by in the catalogue; {@link versionOf} reads it back. */
export function archivePlace(aggregate: AggregateKey, version: number): string {
  return `${aggregate}#${version}`;
}

/** The version of an {@link archivePlace}. */
export function versionOf(place: string): number {
  return Number(place.slice(place.lastIndexOf('#') + 1));
}

/** The range of {@link archivePlace} over all versions of an aggregate: `$` is what follows `#`. */
function placesOf(aggregate: AggregateKey): { readonly $gte: string; readonly $lt: string } {
  return { $gte: `${aggregate}#`, $lt: `${aggregate}$` };
}

/** Those of `ids` that lie in files. */
export async function filedAmong(database: Db, ids: readonly EventId[]): Promise<EventId[]> {
  const files = await catalogueOf(database)
    .find<Pick<ArchivedFile, 'eventIds'>>(
      { state: 'archived', eventIds: { $in: [...ids] } },
      { projection: { eventIds: 1 } },
    )
    .toArray();
  const filed = new Set(files.flatMap(({ eventIds }) => eventIds));
  return ids.filter((id) => filed.has(id));
}

/** Without `files` it can only tell that rows are there. */
export function createFiledRows(database: Db, files: ArchiveFiles | null): FiledRows {
  return new FiledRows(database, files);
}

type Entry = Pick<ArchivedFile, '_id' | 'from' | 'to' | 'sha256'>;
const ENTRY = { from: 1, to: 1, sha256: 1 } as const;

/** Places that are looked for with one statement. */
const PLACES_MAX = 100;

/** Files that are kept decoded: a group that starts from the beginning reads each row of a file, one page after the other. */
const DECODED_MAX = 4;

export interface FiledRow {
  readonly document: OutboxDocument;
  /** The name of the file. */
  readonly place: string;
}

/** A file that cannot be read from here, and which of the places that were asked for lie in it. */
export interface UnreadableFile {
  readonly place: string;
  /** A whole sentence. */
  readonly reason: string;
  readonly places: readonly string[];
}

export interface FiledPlaces {
  readonly rows: readonly FiledRow[];
  readonly unreadable: readonly UnreadableFile[];
}

/** Reads archive files by their catalogue; without `files` it can only tell that rows are there. */
export class FiledRows {
  readonly #database: Db;
  readonly #files: ArchiveFiles | null;
  readonly #decoded = new Map<string, Promise<readonly PublishedDocument[]>>();

  constructor(database: Db, files: ArchiveFiles | null) {
    this.#database = database;
    this.#files = files;
  }

  async findVersion(aggregate: AggregateKey, version: number): Promise<OutboxDocument | null> {
    const place = archivePlace(aggregate, version);
    const entry = await catalogueOf(this.#database).findOne<Entry>(
      { places: place, state: 'archived' },
      { projection: ENTRY },
    );
    if (entry === null) return null;
    const rows = await this.#rowsOf(entry);
    return rows?.find((row) => row.aggregateVersion === version && aggregateKey(row) === aggregate) ?? null;
  }

  /** Those of `ids` that lie in files, by the catalogue alone. */
  filedAmong(ids: readonly EventId[]): Promise<readonly EventId[]> {
    return filedAmong(this.#database, ids);
  }

  /** Whether a version lies in a file, by the catalogue alone. */
  async hasVersion(aggregate: AggregateKey, version: number): Promise<boolean> {
    const places = archivePlace(aggregate, version);
    return (
      (await catalogueOf(this.#database).findOne({ places, state: 'archived' }, { projection: { _id: 1 } })) !== null
    );
  }

  /** All versions of an aggregate that lie in files, rising, by the catalogue alone. */
  async versionsOf(aggregate: AggregateKey): Promise<readonly number[]> {
    const entries = catalogueOf(this.#database)
      .find<Pick<ArchivedFile, 'places'>>(
        { places: { $elemMatch: placesOf(aggregate) }, state: 'archived' },
        { projection: { places: 1 } },
      )
      .batchSize(10);
    const start = archivePlace(aggregate, 0).slice(0, -1);
    const versions: number[] = [];
    for await (const { places } of entries) {
      for (const place of places) if (place.startsWith(start)) versions.push(Number(place.slice(start.length)));
    }
    return versions.sort((left, right) => left - right);
  }

  /** Versions that lie in files, of so many aggregates in one walk over the catalogue, by the catalogue alone; in no order. */
  async versionsAmong(aggregates: ReadonlySet<AggregateKey>): Promise<ReadonlyMap<AggregateKey, readonly number[]>> {
    const found = new Map<AggregateKey, number[]>();
    const entries = catalogueOf(this.#database)
      .find<Pick<ArchivedFile, 'places'>>({ state: 'archived' }, { projection: { places: 1 } })
      .batchSize(10);
    for await (const { places } of entries) {
      for (const place of places) {
        const end = place.lastIndexOf('#');
        const aggregate = place.slice(0, end) as AggregateKey;
        if (!aggregates.has(aggregate)) continue;
        const versions = found.get(aggregate) ?? [];
        versions.push(Number(place.slice(end + 1)));
        found.set(aggregate, versions);
      }
    }
    return found;
  }

  /** Null where no file has the event. */
  async findEvent(eventId: EventId): Promise<OutboxDocument | null> {
    const entry = await catalogueOf(this.#database).findOne<Entry>(
      { eventIds: eventId, state: 'archived' },
      { projection: ENTRY },
    );
    const rows = entry === null ? null : await this.#rowsOf(entry);
    return rows?.find(({ _id }) => _id === eventId) ?? null;
  }

  /** Those of the events that lie in files, with one look into the catalogue. */
  async findEvents(eventIds: readonly EventId[]): Promise<readonly OutboxDocument[]> {
    const wanted = new Set<string>(eventIds);
    const entries = await catalogueOf(this.#database)
      .find<Entry>({ eventIds: { $in: [...eventIds] }, state: 'archived' }, { projection: ENTRY })
      .toArray();
    const found: OutboxDocument[] = [];
    for (const entry of entries) {
      const rows = (await this.#rowsOf(entry)) ?? [];
      found.push(...rows.filter(({ _id }) => wanted.has(_id)));
    }
    return found;
  }

  /** The rows at these places ({@link archivePlace}) that lie in files. A file that cannot be read from here is named instead. */
  async findPlaces(places: readonly string[]): Promise<FiledPlaces> {
    const wanted = new Set(places);
    const seen = new Set<string>();
    const rows: FiledRow[] = [];
    const unreadable: UnreadableFile[] = [];
    for (let from = 0; from < places.length; from += PLACES_MAX) {
      const some = places.slice(from, from + PLACES_MAX);
      const entries = catalogueOf(this.#database)
        .find<Entry & Pick<ArchivedFile, 'places'>>(
          { places: { $in: some }, state: 'archived' },
          { projection: { ...ENTRY, places: 1 } },
        )
        .batchSize(10);
      for await (const entry of entries) {
        if (seen.has(entry._id)) continue;
        seen.add(entry._id);
        try {
          const found = (await this.#rowsOf(entry)) ?? [];
          const own = found.filter((row) => wanted.has(archivePlace(aggregateKey(row), row.aggregateVersion)));
          rows.push(...own.map((document) => ({ document, place: entry._id })));
        } catch (error) {
          if (!isNightporterError(error, 'NP_ARCHIVE_FAILED')) throw error;
          const own = entry.places.filter((place) => wanted.has(place));
          unreadable.push({ place: entry._id, reason: error.message, places: own });
        }
      }
    }
    return { rows, unreadable };
  }

  /** About how many rows were published after `afterMs`: all of a file that reaches beyond it. */
  async count(afterMs: number): Promise<number> {
    const found = await catalogueOf(this.#database)
      .find<Pick<ArchivedFile, 'rows'>>(
        { state: 'archived', to: { $gt: new Date(afterMs) } },
        { projection: { rows: 1 } },
      )
      .toArray();
    return found.reduce((sum, { rows }) => sum + rows, 0);
  }

  /** About `limit` rows that were published after `afterMs` and up to `untilMs`, in order; up to `toMs` they are complete. */
  async readRange(range: { afterMs: number; untilMs: number; limit: number }): Promise<{
    readonly rows: readonly PublishedDocument[];
    readonly toMs: number;
  }> {
    const { afterMs, limit, untilMs } = range;
    const entries = catalogueOf(this.#database)
      .find<Entry>(
        { state: 'archived', to: { $gt: new Date(afterMs) }, from: { $lte: new Date(untilMs) } },
        { projection: ENTRY },
      )
      .sort({ from: 1 });
    let rows: PublishedDocument[] = [];
    try {
      for await (const entry of entries) {
        // Rows before the next file begins are complete: enough of them are a page.
        const complete = rows.filter(({ publishedAt }) => publishedAt < entry.from);
        if (complete.length >= limit) return pageOf(complete, { limit, toMs: entry.from.getTime() - 1 });
        const more = (await this.#rowsOf(entry)) ?? [];
        const inRange = more.filter(
          ({ publishedAt }) => publishedAt.getTime() > afterMs && publishedAt.getTime() <= untilMs,
        );
        rows = [...rows, ...inRange].sort(byPublication);
      }
    } finally {
      await entries.close();
    }
    return pageOf(rows, { limit, toMs: untilMs });
  }

  /** Null when the file has aged out meanwhile. */
  async #rowsOf(entry: Entry): Promise<readonly PublishedDocument[] | null> {
    const known = this.#decoded.get(entry._id);
    this.#decoded.delete(entry._id);
    const reading = known ?? this.#read(entry);
    this.#decoded.set(entry._id, reading);
    for (const name of [...this.#decoded.keys()].slice(0, -DECODED_MAX)) this.#decoded.delete(name);
    try {
      return await reading;
    } catch (error) {
      this.#decoded.delete(entry._id);
      const isNamed = await catalogueOf(this.#database).findOne({ _id: entry._id, state: 'archived' });
      if (isNamed === null) return null;
      throw error;
    }
  }

  async #read({ _id: name, sha256 }: Entry): Promise<readonly PublishedDocument[]> {
    const content = this.#files === null ? null : await this.#files.read(name);
    if (content !== null) return (await decodeArchive({ name, content, sha256 })) as readonly PublishedDocument[];
    const why = this.#files === null ? 'no archive folder is configured here' : 'it is not in the archive';
    const message = `Archive file ${name}, which ${this.#database.databaseName} names, cannot be read: ${why}.`;
    throw new NightporterError('NP_ARCHIVE_FAILED', message);
  }
}

/** The first rows of a page, never parting those of one moment. */
function pageOf(
  rows: readonly PublishedDocument[],
  { limit, toMs }: { limit: number; toMs: number },
): { readonly rows: readonly PublishedDocument[]; readonly toMs: number } {
  const last = rows[limit - 1]?.publishedAt;
  if (last === undefined || rows.length === limit) return { rows, toMs };
  return { rows: rows.filter(({ publishedAt }) => publishedAt <= last), toMs: last.getTime() };
}

function byPublication(left: PublishedDocument, right: PublishedDocument): number {
  return left.publishedAt.getTime() - right.publishedAt.getTime();
}
