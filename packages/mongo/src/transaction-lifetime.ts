import { MongoServerError, type MongoClient } from 'mongodb';

/** After how long the server ends a transaction by itself (transactionLifetimeLimitSeconds); null where it does not say, or the user may not ask. */
export async function transactionLifetimeLimitMs(client: MongoClient): Promise<number | null> {
  try {
    const asked = { getParameter: 1, transactionLifetimeLimitSeconds: 1 };
    const seconds: unknown = (await client.db('admin').command(asked))['transactionLifetimeLimitSeconds'];
    return typeof seconds === 'number' ? seconds * 1_000 : null;
  } catch (error) {
    if (error instanceof MongoServerError) return null;
    throw error;
  }
}
