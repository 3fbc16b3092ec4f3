import { OUTBOX_COLLECTIONS, bucketNamed, type ArchiveBucket } from '@nightporter/mongo';
import type { ClientSession } from 'mongodb';
import { runAlone } from './alone.js';
import type { DroppedArchive } from './contract.js';
import { heldAmong, type Held, type Rule } from './policy.js';
import { readStandingsAlone, recordDeleted } from './registry.js';
import type { RetentionWorld } from './world.js';

export interface Expired {
  readonly dropped: readonly DroppedArchive[];
  readonly held: readonly (Held & { readonly name: string })[];
}

/**
 * Drops whole archive collections whose rows are all older than `archiveMs`, and below the watermarks of the groups of their topics. That it
 * is decided goes on record first, in a transaction that conflicts with registrations; a crash before the drop leaves it to the next run.
 */
export async function dropExpiredBuckets(world: RetentionWorld, rule: Rule, signal?: AbortSignal): Promise<Expired> {
  const { archiveMs, database } = world;
  const dropped: DroppedArchive[] = [];
  const held: Expired['held'][number][] = [];
  if (archiveMs === null) return { dropped, held };
  for (const bucket of await bucketsOf(world)) {
    if (signal?.aborted === true) break;
    if (bucket.toMs > rule.nowMs - archiveMs) continue;
    const topics = (await database.collection(bucket.name).distinct('topic')) as string[];
    const reasons = await decide(world, { bucket, rule: { ...rule, afterMs: archiveMs }, signal, topics });
    if (reasons === null) break;
    held.push(...reasons.map((reason) => ({ ...reason, name: bucket.name })));
    if (reasons.length > 0) continue;
    const rows = await database.collection(bucket.name).countDocuments();
    await database.collection(bucket.name).drop();
    dropped.push({ name: bucket.name, rows });
  }
  return { dropped, held };
}

async function bucketsOf({ database }: RetentionWorld): Promise<readonly ArchiveBucket[]> {
  const name = new RegExp(`^${OUTBOX_COLLECTIONS.archive}_`);
  const collections = await database.listCollections({ name }, { nameOnly: true }).toArray();
  const buckets = collections.flatMap((collection) => bucketNamed(collection.name) ?? []);
  return buckets.sort((left, right) => left.fromMs - right.fromMs);
}

interface Decision {
  readonly bucket: ArchiveBucket;
  readonly rule: Rule;
  readonly signal: AbortSignal | undefined;
  readonly topics: readonly string[];
}

/** Empty when the bucket may go, which then is on record; else why it stays. Null when it was told to end. */
function decide(world: RetentionWorld, { bucket, rule, signal, topics }: Decision): Promise<readonly Held[] | null> {
  const decideOnce = async (session: ClientSession): Promise<readonly Held[]> => {
    const standings = await readStandingsAlone(world.groups, session);
    // As if each topic had a row in the bucket's last moment.
    const publishedAt = new Date(bucket.toMs - 1);
    const rows = topics.map((topic) => ({ topic, publishedAt }));
    const held = heldAmong(rows, standings, rule);
    if (held.length === 0) await recordDeleted(world.groups, rows, session);
    return held;
  };
  const operation = `dropping ${world.database.databaseName}.${bucket.name}`;
  return runAlone(world, { operation, work: decideOnce, signal });
}
