import { catalogueOf, type ArchiveFiles, type ArchivedFile } from '@nightporter/mongo';
import type { ClientSession } from 'mongodb';
import { runAlone } from './alone.js';
import type { DroppedArchive } from './contract.js';
import type { Expired } from './expiry.js';
import { removeFile } from './file-batch.js';
import { heldAmong, type Held, type Rule } from './policy.js';
import { readStandingsAlone, recordDeleted } from './registry.js';
import type { RetentionWorld } from './world.js';

type Entry = Pick<ArchivedFile, '_id' | 'to' | 'rows' | 'topics'>;

/**
 * Removes files whose rows are all older than `archiveMs`, and below the watermarks of the groups of their topics. The transaction that decides
 * says `removing`; what a crash leaves of the file is removed by the next run.
 */
export async function dropExpiredFiles(
  world: RetentionWorld,
  { files, rule, signal }: { files: ArchiveFiles; rule: Rule; signal: AbortSignal | undefined },
): Promise<Expired> {
  const { archiveMs, database } = world;
  const dropped: DroppedArchive[] = [];
  const held: Expired['held'][number][] = [];
  if (archiveMs === null) return { dropped, held };
  const entries = await catalogueOf(database)
    .find<Entry>(
      { state: 'archived', to: { $lt: new Date(rule.nowMs - archiveMs) } },
      { projection: { to: 1, rows: 1, topics: 1 }, sort: { to: 1 } },
    )
    .toArray();
  for (const entry of entries) {
    if (signal?.aborted === true) break;
    const reasons = await decide(world, entry, { rule: { ...rule, afterMs: archiveMs }, signal });
    if (reasons === null) break;
    held.push(...reasons.map((reason) => ({ ...reason, name: entry._id })));
    if (reasons.length > 0) continue;
    await removeFile(world, files, entry._id);
    dropped.push({ name: entry._id, rows: entry.rows });
  }
  return { dropped, held };
}

/** Empty when the file may go, and is forgotten; else why it stays. Null when it was told to end. */
function decide(
  world: RetentionWorld,
  { _id, to, topics }: Entry,
  { rule, signal }: { rule: Rule; signal: AbortSignal | undefined },
): Promise<readonly Held[] | null> {
  const decideOnce = async (session: ClientSession): Promise<readonly Held[]> => {
    const standings = await readStandingsAlone(world.groups, session);
    const rows = topics.map((topic) => ({ topic, publishedAt: to }));
    const held = heldAmong(rows, standings, rule);
    if (held.length > 0) return held;
    await catalogueOf(world.database).updateOne(
      { _id, state: 'archived' },
      { $set: { state: 'removing' } },
      { session },
    );
    await recordDeleted(world.groups, rows, session);
    return held;
  };
  return runAlone(world, { operation: `removing archive file ${_id}`, work: decideOnce, signal });
}
