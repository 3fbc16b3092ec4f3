import type { OutboxDocument } from '@nightporter/contracts';
import type { MongoClient } from 'mongodb';

/** The database's clock; rejects where the database does not answer. */
export type DatabaseNow = () => Promise<Date>;

/** How long the process's monotonic clock counts on from the last answer. */
const ANSWER_LIFETIME_MS = 30_000;

/** Asks the database twice a minute at most: an insert cannot be dated with `$$NOW`. */
export function createDatabaseNow(client: MongoClient): DatabaseNow {
  let answer: { readonly databaseMs: number; readonly atMs: number } | undefined;
  return async () => {
    if (answer === undefined || performance.now() - answer.atMs > ANSWER_LIFETIME_MS) {
      const askedAtMs = performance.now();
      const { localTime } = (await client.db('admin').command({ hello: 1 })) as unknown as { localTime: Date };
      answer = { databaseMs: localTime.getTime(), atMs: (askedAtMs + performance.now()) / 2 };
    }
    return new Date(answer.databaseMs + (performance.now() - answer.atMs));
  };
}

/**
 * Dates documents by the database's clock, right before they are inserted: what takes the time from commit to effect compares it with that
 * clock. Where it cannot be asked they keep the producer's date, since a figure is not worth a failed write.
 */
export async function datedByDatabase(
  documents: readonly OutboxDocument[],
  now: DatabaseNow,
): Promise<readonly OutboxDocument[]> {
  try {
    const createdAt = await now();
    return documents.map((document) => ({ ...document, createdAt, updatedAt: createdAt }));
  } catch {
    return documents;
  }
}
