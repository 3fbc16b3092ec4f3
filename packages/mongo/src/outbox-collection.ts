import type { OutboxDocument } from '@nightporter/contracts';
import type { Namespace } from '@nightporter/protocol';
import type { Collection, MongoClient } from 'mongodb';
import { namespaceParts } from './collections.js';
import { durableDatabase } from './database.js';

export function outboxCollection(client: MongoClient, namespace: Namespace): Collection<OutboxDocument> {
  const { database, collection } = namespaceParts(namespace);
  return durableDatabase(client, database).collection<OutboxDocument>(collection);
}
