import type { MongoClient } from 'mongodb';

/** The database's clock, for dates that cannot be written with `$$NOW`. */
export interface DatabaseClock {
  /** Asks the database. The answer is never ahead of its clock. */
  read(): Promise<Date>;
  /** Asks now and then, and counts on with the process's monotonic clock: right within half a round trip. */
  estimate(): Promise<Date>;
}

const ESTIMATE_LIFETIME_MS = 30_000;

export function createDatabaseClock(client: MongoClient): DatabaseClock {
  let anchor: { readonly databaseMs: number; readonly atMs: number } | undefined;

  async function read(): Promise<Date> {
    const sentAtMs = performance.now();
    const { localTime } = (await client.db('admin').command({ hello: 1 })) as unknown as { localTime: Date };
    anchor = { databaseMs: localTime.getTime(), atMs: (sentAtMs + performance.now()) / 2 };
    return localTime;
  }

  async function estimate(): Promise<Date> {
    if (anchor === undefined || performance.now() - anchor.atMs > ESTIMATE_LIFETIME_MS) return read();
    return new Date(anchor.databaseMs + (performance.now() - anchor.atMs));
  }

  return { read, estimate };
}
