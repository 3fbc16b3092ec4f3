import { createDatabaseClock, createLeaseStore, guarded, runTransaction } from '@nightporter/mongo';
import { NightporterError, epoch as epochOf } from '@nightporter/protocol';
import { randomUUID } from 'node:crypto';
import type { ClientSession, MongoClient } from 'mongodb';
import type { LiveFile } from '../domain/compaction.js';
import type { StagedEvent } from '../domain/facts.js';
import { LANDER, LANDER_COLLECTION, warehouseCollections, type FileDocument } from './documents.js';

/** One turn of landing: as long as its epoch is the newest, nobody else changes what the warehouse consists of. */
export interface Turn {
  /** Unique to this turn: whoever begins anew raises the epoch, even over a turn of its own. */
  readonly owner: string;
  readonly epoch: number;
}

/** What a turn makes of the warehouse, all of it or nothing. */
export interface Change {
  readonly added: readonly LiveFile[];
  /** Events that are in the added files, and are staged no longer. */
  readonly landed: readonly string[];
  /** Files whose rows are in the added files. */
  readonly replaced: readonly string[];
}

export interface Contents {
  /** Names the warehouse for ever. */
  readonly warehouse: string;
  readonly revision: number;
  readonly live: readonly LiveFile[];
}

/** What MongoDB knows of the warehouse, and that is what counts. Rejects with NP_STORE_UNAVAILABLE where it cannot say, or cannot say whether. */
export interface WarehouseStore {
  /** Takes or renews the lease; null while another has it. */
  take(owner: string, leaseMs: number): Promise<Turn | null>;
  release(turn: Turn): Promise<void>;
  contents(): Promise<Contents>;
  /** The oldest staged events. */
  staged(max: number): Promise<readonly StagedEvent[]>;
  /** Commits the change, or rejects: with NP_LEASE_LOST where there is a newer turn. */
  commit(turn: Turn, change: Change): Promise<void>;
  /** Every file that counts, `live` or `replaced`. */
  names(): Promise<ReadonlySet<string>>;
  /** Files that were replaced so long ago. */
  replacedFor(ageMs: number): Promise<readonly string[]>;
  forget(names: readonly string[]): Promise<void>;
  /** How many events are in no file yet, and since when the oldest of them. */
  figures(): Promise<StagedFigures>;
  nowMs(): Promise<number>;
}

export interface StagedFigures {
  readonly events: number;
  /** Since the oldest occurred; null where there is none. */
  readonly oldestMs: number | null;
}

export function createWarehouseStore(client: MongoClient, database: string): WarehouseStore {
  const db = client.db(database);
  const { staged, files, lander } = warehouseCollections(db);
  const leases = createLeaseStore(db, LANDER_COLLECTION);
  const clock = createDatabaseClock(client);
  const inPlace = <Result>(operation: string, run: () => Promise<Result>): Promise<Result> =>
    guarded(`${operation} in ${database}`, run);

  async function changeAll(session: ClientSession, turn: Turn, { added, landed, replaced }: Change): Promise<void> {
    const { owner, epoch } = turn;
    // The fence: a newer turn has written this document, or this transaction and its take-over conflict over it.
    const fence = await lander.updateOne({ _id: LANDER, owner, epoch }, { $inc: { revision: 1 } }, { session });
    if (fence.matchedCount === 0)
      throw new NightporterError('NP_LEASE_LOST', `Another worker lands in ${database}: epoch ${epoch} is over.`);
    if (landed.length > 0) {
      const { deletedCount } = await staged.deleteMany({ _id: { $in: [...landed] } }, { session });
      assertAll('staged events', deletedCount, landed.length);
    }
    const at = await clock.estimate();
    if (replaced.length > 0) {
      const which = { _id: { $in: [...replaced] }, state: 'live' as const };
      const { modifiedCount } = await files.updateMany(
        which,
        { $set: { state: 'replaced', replacedAt: at } },
        { session },
      );
      assertAll('live files', modifiedCount, replaced.length);
    }
    await files.insertMany(added.map(documentOf), { session });
  }

  return {
    take: async (owner, leaseMs) => {
      const outcome = await leases.acquire({ shard: LANDER, owner, durationMs: leaseMs });
      return outcome.kind === 'held' ? { owner, epoch: outcome.epoch } : null;
    },
    release: ({ owner, epoch }) => leases.release({ shard: LANDER, owner, epoch: epochOf(epoch) }),
    contents: () =>
      inPlace('reading what the warehouse consists of', async () => {
        await lander.updateOne({ _id: LANDER, warehouse: { $exists: false } }, { $set: { warehouse: randomUUID() } });
        const document = await lander.findOne({ _id: LANDER });
        const live = (await files.find({ state: 'live' }).toArray()).map(fileOf);
        return { warehouse: document?.warehouse ?? '', revision: document?.revision ?? 0, live };
      }),
    staged: (max) =>
      inPlace('reading staged events', async () => {
        const documents = await staged.find().sort({ _id: 1 }).limit(max).toArray();
        return documents.map(({ _id, ...event }) => ({ eventId: _id, ...event }));
      }),
    commit: (turn, change) =>
      runTransaction(client, `landing in ${database}`, ({ own, session }) =>
        own(`landing in ${database}`, () => changeAll(session, turn, change)),
      ),
    names: () =>
      inPlace('reading names of files', async () => {
        const documents = await files.find({}, { projection: { _id: 1 } }).toArray();
        return new Set(documents.map(({ _id }) => _id));
      }),
    replacedFor: (ageMs) =>
      inPlace('reading replaced files', async () => {
        const before = new Date((await clock.estimate()).getTime() - ageMs);
        const documents = await files.find({ state: 'replaced', replacedAt: { $lte: before } }).toArray();
        return documents.map(({ _id }) => _id);
      }),
    forget: (names) =>
      inPlace('forgetting replaced files', async () => {
        await files.deleteMany({ _id: { $in: [...names] }, state: 'replaced' });
      }),
    figures: () =>
      inPlace('counting staged events', async () => {
        const events = await staged.countDocuments({});
        const [oldest] = await staged.find().sort({ occurredAt: 1 }).limit(1).toArray();
        const nowMs = (await clock.estimate()).getTime();
        return { events, oldestMs: oldest === undefined ? null : Math.max(0, nowMs - Date.parse(oldest.occurredAt)) };
      }),
    nowMs: async () => (await clock.estimate()).getTime(),
  };
}

function assertAll(what: string, changed: number, wanted: number): void {
  if (changed === wanted) return;
  throw new NightporterError(
    'NP_INTERNAL',
    `${changed} of ${wanted} ${what} are as the turn that landed them left them.`,
  );
}

function documentOf({ name, addedAtMs, ...file }: LiveFile): FileDocument {
  return { _id: name, ...file, state: 'live', addedAt: new Date(addedAtMs), replacedAt: null };
}

function fileOf({ _id, table, day, rows, bytes, sha256, level, addedAt }: FileDocument): LiveFile {
  return { name: _id, table, day, rows, bytes, sha256, level, addedAtMs: addedAt.getTime() };
}
