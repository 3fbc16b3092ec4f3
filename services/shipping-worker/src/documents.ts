import type { Collection, Db, MongoClient } from 'mongodb';

/** A document of `shipments`: one per order, for ever. */
export interface ShipmentDocument {
  /** orderId */
  readonly _id: string;
  readonly lines: readonly { readonly productId: string; readonly quantity: number }[];
  /** `returned`: the order was cancelled after its stock had left the shelf. */
  readonly state: 'created' | 'delivered' | 'returned';
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export function shipmentsOf(database: Db): Collection<ShipmentDocument> {
  return database.collection<ShipmentDocument>('shipments');
}

/** Creates collection and index where they are missing; safe to call at every start, from several processes at once. */
export async function ensureShippingCollections(client: MongoClient, database: string): Promise<void> {
  await shipmentsOf(client.db(database)).createIndex({ state: 1 });
}
