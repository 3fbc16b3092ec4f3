import type { OutboxDocument } from '@nightporter/contracts';
import {
  OUTBOX_COLLECTIONS,
  createDatabaseClock,
  durableDatabase,
  namespaceParts,
  type DatabaseClock,
  type GroupDocument,
} from '@nightporter/mongo';
import { NightporterError } from '@nightporter/protocol';
import type { Collection, Db, MongoClient } from 'mongodb';
import type { RetentionOptions } from './contract.js';

/** What the parts of a run share. */
export interface RetentionWorld extends Required<Omit<RetentionOptions, 'client'>> {
  readonly client: MongoClient;
  readonly database: Db;
  readonly outbox: Collection<OutboxDocument>;
  readonly groups: Collection<GroupDocument>;
  readonly clock: DatabaseClock;
}

const MIB = 1_048_576;
const YEAR_MS = 365 * 86_400_000;

/** Throws NP_CONFIG_INVALID for an option that is out of range. */
export function retentionWorld(options: RetentionOptions): RetentionWorld {
  const { client, namespace } = options;
  const { database: name, collection } = namespaceParts(namespace);
  const complete = {
    archiveMs: null,
    batchRowsMax: 1_000,
    batchBytesMax: 8 * MIB,
    pauseMs: 100,
    marginMs: 60_000,
    // Longer than a transaction may be open: that of a process that died keeps the registry for so long.
    conflictMs: 90_000,
    ...options,
  };
  assertRange('afterMs', complete.afterMs, { min: 0, max: 100 * YEAR_MS });
  if (complete.archiveMs !== null) assertRange('archiveMs', complete.archiveMs, { min: 0, max: 100 * YEAR_MS });
  assertRange('batchRowsMax', complete.batchRowsMax, { min: 1, max: 10_000 });
  assertRange('batchBytesMax', complete.batchBytesMax, { min: 1, max: 64 * MIB });
  assertRange('pauseMs', complete.pauseMs, { min: 0, max: 600_000 });
  assertRange('marginMs', complete.marginMs, { min: 0, max: YEAR_MS });
  assertRange('conflictMs', complete.conflictMs, { min: 0, max: 600_000 });
  const database = durableDatabase(client, name);
  return {
    ...complete,
    database,
    outbox: database.collection<OutboxDocument>(collection),
    groups: database.collection<GroupDocument>(OUTBOX_COLLECTIONS.groups),
    clock: createDatabaseClock(client),
  };
}

function assertRange(name: string, value: number, { min, max }: { min: number; max: number }): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  const message = `${name} of a retention is ${value}; accepted: a whole number from ${min} to ${max}.`;
  throw new NightporterError('NP_CONFIG_INVALID', message);
}
