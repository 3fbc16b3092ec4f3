import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import type { Collection, Db, MongoClient } from 'mongodb';
import { createDatabaseNow, type DatabaseNow } from './database-date.js';

/** The two collections of a producer's database that the write side fills, and its cluster. Their indexes stand in `@nightporter/mongo`. */
export interface OutboxCollections {
  readonly outbox: Collection<OutboxDocument>;
  readonly heads: Collection<OutboxHeadDocument>;
  /** Where commands about transactions go. */
  readonly admin: Db;
  readonly now: DatabaseNow;
}

export function outboxCollections(client: MongoClient, database: string): OutboxCollections {
  const db = client.db(database);
  return {
    outbox: db.collection('outbox'),
    heads: db.collection('outbox_heads'),
    admin: client.db('admin'),
    now: createDatabaseNow(client),
  };
}
