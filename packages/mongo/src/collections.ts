import { NightporterError } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';

/** Creates the producer's collections and indexes where they are missing; safe to call at every start. */
export function ensureOutboxCollections(client: MongoClient, database: string): Promise<void> {
  return notYet(client, database);
}

/** Creates the relay's collections and indexes where they are missing; safe to call at every start. */
export function ensureRelayCollections(client: MongoClient, database: string): Promise<void> {
  return notYet(client, database);
}

/** Creates a consumer's collections and indexes where they are missing; safe to call at every start. */
export function ensureConsumerCollections(client: MongoClient, database: string): Promise<void> {
  return notYet(client, database);
}

function notYet(client: MongoClient, database: string): Promise<void> {
  return Promise.reject(
    new NightporterError('NP_INTERNAL', `the collections of ${client.db(database).databaseName} are not there yet`),
  );
}
