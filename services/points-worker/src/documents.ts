import type { Collection, Db, MongoClient } from 'mongodb';
import type { Award } from './domain/points.js';

/** A document of `awards`: what an order brought its customer. */
export interface AwardDocument extends Omit<Award, 'orderId'> {
  /** orderId */
  readonly _id: string;
  /** The `aggregateVersion` of the event of the order that it took up last. */
  readonly version: number;
}

/** A document of `accounts`. `version` counts its changes: each is written only over the version that it was made from. */
export interface AccountDocument {
  /** customerId */
  readonly _id: string;
  readonly balance: number;
  readonly version: number;
}

export interface PointsCollections {
  readonly awards: Collection<AwardDocument>;
  readonly accounts: Collection<AccountDocument>;
}

export function pointsCollections(database: Db): PointsCollections {
  return {
    awards: database.collection<AwardDocument>('awards'),
    accounts: database.collection<AccountDocument>('accounts'),
  };
}

/** Creates collections and indexes where they are missing; safe to call at every start, from several processes at once. */
export async function ensurePointsCollections(client: MongoClient, database: string): Promise<void> {
  const { awards, accounts } = pointsCollections(client.db(database));
  await awards.createIndex({ customerId: 1 });
  // A transaction should not be the one that creates a collection: concurrent ones would conflict over it.
  await accounts.createIndex({ balance: 1 });
}
