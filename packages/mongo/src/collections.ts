import { NightporterError, type Namespace } from '@nightporter/protocol';
import type { Db, IndexDescription, MongoClient } from 'mongodb';
import { durableDatabase } from './database.js';
import { codeOf, guarded, messageOf } from './driver-errors.js';

/** Every collection of nightporter, by the database that it stands in. */
export const OUTBOX_COLLECTIONS = {
  outbox: 'outbox',
  heads: 'outbox_heads',
  archive: 'outbox_archive',
  files: 'archive_files',
  groups: 'groups',
  actions: 'operator_actions',
} as const;

export const RELAY_COLLECTIONS = {
  leases: 'relay_leases',
  shardMap: 'relay_shard_map',
  instances: 'relay_instances',
  checkpoints: 'relay_checkpoints',
  repairs: 'relay_repairs',
  controls: 'relay_controls',
  doubtedIndexes: 'relay_doubted_indexes',
  actions: 'operator_actions',
} as const;

export const CONSUMER_COLLECTIONS = {
  inbox: 'inbox',
  positions: 'positions',
  parked: 'parked',
  started: 'started',
  starts: 'group_starts',
  /** Up to where the group was audited; made by the first audit. */
  audits: 'audit_marks',
  copies: 'dead_letter_copies',
  actions: 'operator_actions',
} as const;

type Index = IndexDescription & { readonly name: string };

/** One aggregate in the order of its versions, and the last line of defence of dense versions. */
const BY_AGGREGATE: Index = {
  name: 'aggregate_version',
  key: { source: 1, aggregateType: 1, aggregateId: 1, aggregateVersion: 1 },
  unique: true,
};

const UNSETTLED_BY_SLOT = 'unsettled_by_slot';

/** Few, because every mark of the relay rewrites them. */
const OUTBOX_INDEXES: readonly Index[] = [
  BY_AGGREGATE,
  {
    // What is not published yet, slot by slot: small whatever the outbox grows to. `unsettled` leads although it is the same in
    // every entry, because SecantusDB uses an index for a range only when all equalities of the query lead in it.
    name: UNSETTLED_BY_SLOT,
    key: { unsettled: 1, slot: 1, source: 1, aggregateType: 1, aggregateId: 1, aggregateVersion: 1 },
    partialFilterExpression: { unsettled: true },
  },
  // Retention, and the sweeps of the groups.
  { name: 'status_published', key: { status: 1, publishedAt: 1 } },
];

const ARCHIVE_INDEXES: readonly Index[] = [BY_AGGREGATE, { name: 'published', key: { publishedAt: 1 } }];

const FILES_INDEXES: readonly Index[] = [
  { name: 'events', key: { eventIds: 1 } },
  { name: 'places', key: { places: 1 } },
  { name: 'published', key: { state: 1, from: 1 } },
  { name: 'expiry', key: { state: 1, to: 1 } },
];

const ACTION_INDEXES: readonly Index[] = [{ name: 'newest', key: { at: -1 } }];

const INBOX_INDEXES: readonly Index[] = [
  // One effect per group and event. That there is one record per group, aggregate and version is in the _id.
  { name: 'group_event', key: { group: 1, eventId: 1 }, unique: true },
  { name: 'expiry', key: { expireAt: 1 }, expireAfterSeconds: 0 },
];

const PARKED_INDEXES: readonly Index[] = [
  {
    name: 'sequence',
    key: { group: 1, aggregate: 1, version: 1 },
    unique: true,
    partialFilterExpression: { sequenced: true },
  },
  // What is due, and figures.
  { name: 'due', key: { group: 1, state: 1, nextRetryAt: 1 } },
  /** Those that nobody has tried, among many that were. */
  { name: 'untried', key: { group: 1, state: 1, attempts: 1, isSuspect: 1, nextRetryAt: 1 } },
  // Gaps, and what may have been forgotten: all that is read of a message that waits, so that none is fetched.
  { name: 'waiting', key: { group: 1, state: 1, aggregate: 1, version: 1, parkedAt: 1 } },
];

const STARTED_INDEXES: readonly Index[] = [
  { name: 'group_events', key: { group: 1, events: 1 } },
  { name: 'expiry', key: { at: 1 }, expireAfterSeconds: 24 * 60 * 60 },
];

type Plan = Readonly<Record<string, readonly Index[]>>;

const OUTBOX_PLAN: Plan = {
  [OUTBOX_COLLECTIONS.outbox]: OUTBOX_INDEXES,
  [OUTBOX_COLLECTIONS.heads]: [],
  [OUTBOX_COLLECTIONS.archive]: ARCHIVE_INDEXES,
  [OUTBOX_COLLECTIONS.files]: FILES_INDEXES,
  [OUTBOX_COLLECTIONS.groups]: [],
  [OUTBOX_COLLECTIONS.actions]: ACTION_INDEXES,
};

const RELAY_PLAN: Plan = {
  [RELAY_COLLECTIONS.leases]: [],
  [RELAY_COLLECTIONS.shardMap]: [],
  [RELAY_COLLECTIONS.instances]: [],
  [RELAY_COLLECTIONS.checkpoints]: [],
  [RELAY_COLLECTIONS.repairs]: [{ name: 'newest', key: { shard: 1, at: -1 } }],
  [RELAY_COLLECTIONS.controls]: [],
  [RELAY_COLLECTIONS.doubtedIndexes]: [],
  [RELAY_COLLECTIONS.actions]: ACTION_INDEXES,
};

const CONSUMER_PLAN: Plan = {
  [CONSUMER_COLLECTIONS.inbox]: INBOX_INDEXES,
  [CONSUMER_COLLECTIONS.positions]: [],
  [CONSUMER_COLLECTIONS.parked]: PARKED_INDEXES,
  [CONSUMER_COLLECTIONS.started]: STARTED_INDEXES,
  [CONSUMER_COLLECTIONS.starts]: [],
  [CONSUMER_COLLECTIONS.copies]: [{ name: 'next', key: { group: 1, nextTryAt: 1 } }],
  [CONSUMER_COLLECTIONS.actions]: ACTION_INDEXES,
};

/**
 * Creates the producer's collections and indexes where they are missing; safe to call at every start, by many at once.
 * Rejects with NP_CONFIG_INVALID when an index cannot be what it must be, as do the others.
 */
export async function ensureOutboxCollections(client: MongoClient, database: string): Promise<void> {
  await ensurePlan(durableDatabase(client, database), OUTBOX_PLAN);
}

/** Creates the relay's collections and indexes where they are missing. */
export async function ensureRelayCollections(client: MongoClient, database: string): Promise<void> {
  await ensurePlan(durableDatabase(client, database), RELAY_PLAN);
}

/** Creates a consumer's collections and indexes where they are missing. */
export async function ensureConsumerCollections(client: MongoClient, database: string): Promise<void> {
  await ensurePlan(durableDatabase(client, database), CONSUMER_PLAN);
}

/** Creates an archive collection with its indexes: one per time bucket, see archive-buckets.ts. */
export async function ensureArchiveBucket(client: MongoClient, database: string, name: string): Promise<void> {
  await ensurePlan(durableDatabase(client, database), { [name]: ARCHIVE_INDEXES });
}

/** Creates the catalogue of archive files. */
export async function ensureArchiveCatalogue(client: MongoClient, database: string): Promise<void> {
  await ensurePlan(durableDatabase(client, database), { [OUTBOX_COLLECTIONS.files]: FILES_INDEXES });
}

/** Creates one outbox collection with its indexes: what is left to do after a drop. */
export async function ensureOutbox(client: MongoClient, namespace: Namespace): Promise<void> {
  const { database, collection } = namespaceParts(namespace);
  await ensurePlan(durableDatabase(client, database), { [collection]: OUTBOX_INDEXES });
}

/** Whether an outbox has the index that the relay reads by. */
export async function hasUnsettledIndex(client: MongoClient, namespace: Namespace): Promise<boolean> {
  const { database, collection } = namespaceParts(namespace);
  return (await indexNames(durableDatabase(client, database), collection)).has(UNSETTLED_BY_SLOT);
}

const PLANS = { producer: OUTBOX_PLAN, relay: RELAY_PLAN, consumer: CONSUMER_PLAN } as const;

/** Indexes that should be in a database and are not. A collection that is not there has none. Rejects with NP_STORE_UNAVAILABLE. */
export async function missingIndexes(
  client: MongoClient,
  { database: name, kind }: { readonly database: string; readonly kind: keyof typeof PLANS },
): Promise<readonly { readonly collection: string; readonly index: string }[]> {
  const database = durableDatabase(client, name);
  const missing: { collection: string; index: string }[] = [];
  for (const [collection, indexes] of Object.entries(PLANS[kind])) {
    if (indexes.length === 0) continue;
    const found = await guarded(`reading the indexes of ${name}.${collection}`, () => indexNames(database, collection));
    for (const index of indexes) if (!found.has(index.name)) missing.push({ collection, index: index.name });
  }
  return missing;
}

const NO_NAMESPACE = 26;

async function indexNames(database: Db, collection: string): Promise<ReadonlySet<string>> {
  try {
    const found = await database.collection(collection).listIndexes().toArray();
    return new Set(found.map(({ name }: { name?: string }) => name ?? ''));
  } catch (error) {
    if (codeOf(error) === NO_NAMESPACE) return new Set();
    throw error;
  }
}

/** `database.collection`: a database's name has no dot, a collection's may. */
export function namespaceParts(namespace: Namespace): { readonly database: string; readonly collection: string } {
  const dot = namespace.indexOf('.');
  if (dot < 1 || dot === namespace.length - 1) {
    throw new NightporterError('NP_CONFIG_INVALID', `Outbox ${namespace} is not of the form database.collection.`);
  }
  return { database: namespace.slice(0, dot), collection: namespace.slice(dot + 1) };
}

const NAMESPACE_EXISTS = 48;
/** Another index of the name or of the key, or documents that a unique index does not allow. */
const INDEX_REFUSED = new Set([85, 86, 11000]);

async function ensurePlan(database: Db, plan: Plan): Promise<void> {
  for (const [collection, indexes] of Object.entries(plan)) {
    const place = `${database.databaseName}.${collection}`;
    await guarded(`creating ${place}`, async () => {
      await createCollection(database, collection);
      if (indexes.length > 0) await createIndexes(database, collection, indexes);
    });
  }
}

async function createCollection(database: Db, collection: string): Promise<void> {
  try {
    await database.createCollection(collection);
  } catch (error) {
    if (codeOf(error) !== NAMESPACE_EXISTS) throw error;
  }
}

async function createIndexes(database: Db, collection: string, indexes: readonly Index[]): Promise<void> {
  try {
    await database.collection(collection).createIndexes([...indexes]);
  } catch (error) {
    if (!INDEX_REFUSED.has(codeOf(error))) throw error;
    const names = indexes.map((index) => index.name).join(', ');
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `${database.databaseName}.${collection} must have the indexes ${names}, and the server refused: ${messageOf(error)}`,
      { cause: error },
    );
  }
}
