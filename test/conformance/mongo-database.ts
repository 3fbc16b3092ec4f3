import { startMongo, type MongoServer } from '@nightporter/embedded';
import { connectMongo } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll } from 'vitest';

/** One client for the tests of a file, on the shared database. */
export function sharedDatabase(): { client(): MongoClient } {
  let client: MongoClient | undefined;
  let server: MongoServer | undefined;
  beforeAll(async () => {
    server = await startMongo();
    client = await connectMongo({ uri: server.uri, appName: 'conformance' });
  });
  afterAll(async () => {
    await client?.close();
    await server?.stop();
  });
  return {
    client() {
      if (client === undefined) throw new Error('The database is not connected yet.');
      return client;
    },
  };
}
