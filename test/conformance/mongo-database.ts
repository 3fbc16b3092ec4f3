import { connectMongo } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';

export interface SharedDatabase {
  client(): MongoClient;
  /** A database name of its own, dropped when the tests of the file are through. */
  database(prefix: string): string;
}

/** One client for the tests of a file, on the MongoDB that all tests share. */
export function sharedDatabase(): SharedDatabase {
  let client: MongoClient | undefined;
  const databases: string[] = [];
  beforeAll(async () => {
    client = await connectMongo({ uri: sharedStack().mongodbUri, appName: 'nightporter-tests' });
  });
  afterAll(async () => {
    for (const name of databases) await client?.db(name).dropDatabase();
    await client?.close();
  });
  return {
    client() {
      if (client === undefined) throw new Error('The database is not connected yet.');
      return client;
    },
    database(prefix) {
      const name = uniqueName(prefix);
      databases.push(name);
      return name;
    },
  };
}
