import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import type { Collection, MongoClient } from 'mongodb';

/** The two collections of a producer's database that the write side fills. Their indexes stand in `@nightporter/mongo`. */
export interface OutboxCollections {
  readonly outbox: Collection<OutboxDocument>;
  readonly heads: Collection<OutboxHeadDocument>;
}

export function outboxCollections(client: MongoClient, database: string): OutboxCollections {
  const db = client.db(database);
  return { outbox: db.collection('outbox'), heads: db.collection('outbox_heads') };
}
