import type { Collection, Db, MongoClient } from 'mongodb';
import type { Shortage, StockLine } from './domain/stock.js';

/** A document of `stock`. `available` + `reserved` is what is on the shelf; `shipped` has left it. The three add up to what was ever put there. */
export interface StockDocument {
  /** productId */
  readonly _id: string;
  readonly available: number;
  readonly reserved: number;
  readonly shipped: number;
}

/**
 * What is held for an order:
 *
 *   none ──▶ reserved ──▶ committed ──▶ returned
 *     │         └───────▶ released
 *     └────▶ rejected
 *
 * `none`: an event of the order came, but nothing was reserved for it.
 */
export type ReservationState = 'none' | 'reserved' | 'rejected' | 'released' | 'committed' | 'returned';

/** A document of `reservations`: what is held for an order now. */
export interface ReservationDocument {
  /** orderId */
  readonly _id: string;
  readonly state: ReservationState;
  readonly lines: readonly StockLine[];
  /** How many documents of `movements` the order has. */
  readonly movements: number;
  /** The event that led to this state. */
  readonly eventId: string;
  readonly aggregateVersion: number;
  readonly updatedAt: Date;
}

export type MovementKind =
  | 'reserved'
  | 'rejected'
  | 'released'
  | 'committed'
  | 'returned'
  | 'nothing-to-reserve'
  | 'nothing-to-release'
  | 'nothing-to-commit';

/**
 * A document of `movements`: what one run of a handler did. Only ever inserted, and deliberately not unique by event: it is the
 * record by which a checker sees an event that took effect twice, or before its predecessor.
 */
export interface MovementDocument {
  readonly orderId: string;
  /** 1, 2, 3 … per order, in the order of their commits. */
  readonly sequence: number;
  readonly kind: MovementKind;
  readonly lines: readonly StockLine[];
  readonly shortages: readonly Shortage[];
  readonly eventId: string;
  readonly eventType: string;
  readonly aggregateVersion: number;
  readonly at: Date;
}

export interface InventoryCollections {
  readonly stock: Collection<StockDocument>;
  readonly reservations: Collection<ReservationDocument>;
  readonly movements: Collection<MovementDocument>;
}

export function inventoryCollections(database: Db): InventoryCollections {
  return {
    stock: database.collection<StockDocument>('stock'),
    reservations: database.collection<ReservationDocument>('reservations'),
    movements: database.collection<MovementDocument>('movements'),
  };
}

/** Creates collections and indexes where they are missing; safe to call at every start, from several processes at once. */
export async function ensureInventoryCollections(client: MongoClient, database: string): Promise<void> {
  const { stock, reservations, movements } = inventoryCollections(client.db(database));
  await movements.createIndex({ orderId: 1, sequence: 1 }, { unique: true }, undefined);
  await movements.createIndex({ eventId: 1 });
  // Collections that a transaction would have to create first would make concurrent ones conflict.
  await reservations.createIndex({ state: 1 });
  await stock.createIndex({ available: 1 });
}

/** Puts products on the shelf that are not there yet; a product that exists keeps its stock. */
export async function seedStock(client: MongoClient, database: string, seeds: readonly StockLine[]): Promise<void> {
  const { stock } = inventoryCollections(client.db(database));
  if (seeds.length === 0) return;
  await stock.bulkWrite(
    seeds.map(({ productId, quantity }) => ({
      updateOne: {
        filter: { _id: productId },
        update: { $setOnInsert: { available: quantity, reserved: 0, shipped: 0 } },
        upsert: true,
      },
    })),
  );
}
