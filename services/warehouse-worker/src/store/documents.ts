import type { Collection, Db, MongoClient } from 'mongodb';
import type { StagedEvent } from '../domain/facts.js';
import type { LiveFile } from '../domain/compaction.js';

/** A document of `staged`: an event that the group has settled, and that is in no file yet. */
export interface StagedDocument extends Omit<StagedEvent, 'eventId'> {
  /** eventId */
  readonly _id: string;
}

/**
 * A document of `files`: what the folder has that counts.
 *
 *   (absent) ──land, merge──▶ live ──merge──▶ replaced ──▶ (absent)
 *
 * A file in the folder that has no document here counts for nothing: it was cut off, or its transaction did not commit. `replaced`: its rows are
 * in a merged file; readers of an older manifest may still be reading it.
 */
export interface FileDocument extends Omit<LiveFile, 'name' | 'addedAtMs'> {
  /** Its path in the folder. */
  readonly _id: string;
  readonly state: 'live' | 'replaced';
  readonly addedAt: Date;
  readonly replacedAt: Date | null;
}

/** The document of `lander`: `_id` is `lander`. Who lands (a lease on the database's clock), and what was landed last. */
export interface LanderDocument {
  readonly _id: string;
  readonly owner: string;
  /** Raised whenever another one lands, and before anything that was left is removed. */
  readonly epoch: number;
  readonly expiresAt: Date;
  /** Names the warehouse, in the database and in the manifest, so that neither is taken for that of another. */
  readonly warehouse?: string;
  /** Raised by every transaction that changes what the warehouse consists of. */
  readonly revision?: number;
}

export interface WarehouseCollections {
  readonly staged: Collection<StagedDocument>;
  readonly files: Collection<FileDocument>;
  readonly lander: Collection<LanderDocument>;
}

export const LANDER_COLLECTION = 'lander';
export const LANDER = 'lander';

export function warehouseCollections(database: Db): WarehouseCollections {
  return {
    staged: database.collection<StagedDocument>('staged'),
    files: database.collection<FileDocument>('files'),
    lander: database.collection<LanderDocument>(LANDER_COLLECTION),
  };
}

/** Creates collections and indexes where they are missing; safe to call at every start, from several processes at once. */
export async function ensureWarehouseCollections(client: MongoClient, database: string): Promise<void> {
  const { staged, files, lander } = warehouseCollections(client.db(database));
  await files.createIndex({ state: 1, replacedAt: 1 });
  // A transaction should not be the one that creates a collection: concurrent ones would conflict over it.
  await staged.createIndex({ occurredAt: 1 });
  await lander.createIndex({ epoch: 1 });
}
