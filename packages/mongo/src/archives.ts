import type { OutboxDocument } from '@nightporter/contracts';
import type { Collection, Db } from 'mongodb';
import { bucketNamed } from './archive-buckets.js';
import { OUTBOX_COLLECTIONS } from './collections.js';

/** One collection of published rows that retention has moved out of the outbox. */
export interface Archive {
  readonly documents: Collection<OutboxDocument>;
  /** Its rows were published at `fromMs` or later, and before `toMs`. */
  readonly fromMs: number;
  readonly toMs: number;
}

const ANY_TIME = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
const NAME = new RegExp(`^${OUTBOX_COLLECTIONS.archive}(_|$)`);

/** The archive is one collection, or one per time bucket with a suffix. The earliest comes first. */
export async function archivesOf(database: Db): Promise<readonly Archive[]> {
  const found = await database.listCollections({ name: NAME }, { nameOnly: true }).toArray();
  const archives = found.map(({ name }) => {
    const { fromMs, toMs } = bucketNamed(name) ?? ANY_TIME;
    return { documents: database.collection<OutboxDocument>(name), fromMs, toMs };
  });
  return archives.sort((left, right) => left.fromMs - right.fromMs);
}
