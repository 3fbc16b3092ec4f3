import { bucketOf } from '@nightporter/mongo';
import type { EventId } from '@nightporter/protocol';
import {
  beginsBatch,
  heldAmong,
  mayGo,
  type Batch,
  type BatchLimits,
  type Held,
  type OldRow,
  type Rule,
  type Standing,
} from './policy.js';
import type { RetentionWorld } from './world.js';

export type Row = OldRow & { readonly _id: EventId };

/** What the cursor brings at a time, in the order of the index (status, publishedAt). */
const READ_AT_ONCE = 1_000;

/**
 * Batches of what may go as the groups stand now. One cursor reads the range of the index once, without the payloads, so that a run costs
 * what lies in the range, and rows that are held are not read for every batch again.
 */
export async function* scan(
  world: RetentionWorld,
  { beforeMs, rule, standings }: { beforeMs: number; rule: Rule; standings: readonly Standing[] },
): AsyncGenerator<Batch<Row>> {
  if (beforeMs <= 0) return;
  const cursor = world.outbox
    .find({ status: 'PUBLISHED', publishedAt: { $lt: new Date(beforeMs) } })
    .project<Row>({ topic: 1, publishedAt: 1, bytes: { $bsonSize: '$$ROOT' } })
    .sort({ publishedAt: 1 })
    .batchSize(READ_AT_ONCE);
  const limits = batchLimits(world);
  let rows: Row[] = [];
  let bytes = 0;
  try {
    for await (const row of cursor) {
      if (!mayGo(row, standings, rule)) continue;
      if (beginsBatch({ rows, bytes }, row, limits)) {
        yield { rows, bytes };
        [rows, bytes] = [[], 0];
      }
      rows.push(row);
      bytes += row.bytes;
    }
    if (rows.length > 0) yield { rows, bytes };
  } finally {
    await cursor.close();
  }
}

function batchLimits({ batchBytesMax, batchRowsMax, destination }: RetentionWorld): BatchLimits {
  return {
    rowsMax: batchRowsMax,
    bytesMax: batchBytesMax,
    bucketOf: (publishedAt) =>
      destination.kind === 'collections' ? bucketOf(publishedAt, destination.bucket).name : '',
  };
}

/** Rows that are looked at to tell why old ones stay. */
const HELD_MAX = 1_000;

/** Why rows that are old enough are still there. */
export async function heldRows(
  world: RetentionWorld,
  standings: readonly Standing[],
  rule: Rule,
): Promise<readonly Held[]> {
  if (rule.forced) return [];
  const left = await world.outbox
    .find({ status: 'PUBLISHED', publishedAt: { $lt: new Date(rule.nowMs - rule.afterMs) } })
    .project<Pick<Row, 'topic' | 'publishedAt'>>({ topic: 1, publishedAt: 1 })
    .sort({ publishedAt: 1 })
    .limit(HELD_MAX)
    .toArray();
  return heldAmong(left, standings, rule);
}
