import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import type { MovementDocument, ReservationDocument, StockDocument } from '@nightporter/inventory-worker';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import type { OrderDocument } from '@nightporter/orders-api';
import type { MongoClient } from 'mongodb';
import { PRODUCERS, registeredGroups, type Databases } from './shop.js';

/** A consumer group as it is registered with a producer, with what it keeps in its own database. */
export interface GroupEvidence {
  readonly group: string;
  readonly topics: readonly string[];
  readonly inbox: readonly InboxDocument[];
  readonly positions: readonly PositionDocument[];
  readonly parked: readonly ParkedDocument[];
  /** Messages without a place in any sequence. */
  readonly setAside: number;
}

/** What the databases hold, read once everything is at rest. Nothing of it is what a service says about itself. */
export interface Evidence {
  /** Every row of every outbox. */
  readonly rows: readonly OutboxDocument[];
  readonly heads: readonly OutboxHeadDocument[];
  readonly groups: readonly GroupEvidence[];
  readonly orders: readonly OrderDocument[];
  readonly stock: readonly StockDocument[];
  readonly reservations: readonly ReservationDocument[];
  /** By order and sequence. */
  readonly movements: readonly MovementDocument[];
}

export async function readEvidence(client: MongoClient, databases: Databases): Promise<Evidence> {
  const orders = client.db(databases.orders);
  const inventory = client.db(databases.inventory);
  const outboxes = PRODUCERS.map((producer) => client.db(databases[producer]));
  const rows = outboxes.map((db) => db.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox).find().toArray());
  const heads = outboxes.map((db) => db.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads).find().toArray());
  return {
    rows: (await Promise.all(rows)).flat(),
    heads: (await Promise.all(heads)).flat(),
    groups: await readGroups(client, databases),
    orders: await orders.collection<OrderDocument>('orders').find().toArray(),
    stock: await inventory.collection<StockDocument>('stock').find().toArray(),
    reservations: await inventory.collection<ReservationDocument>('reservations').find().toArray(),
    movements: await inventory
      .collection<MovementDocument>('movements')
      .find()
      .sort({ orderId: 1, sequence: 1 })
      .toArray(),
  };
}

/** The groups that are registered with any producer. Each keeps its documents in the database of its name. */
async function readGroups(client: MongoClient, databases: Databases): Promise<readonly GroupEvidence[]> {
  const registered = await registeredGroups(client, databases);
  return Promise.all(
    registered.map(async ({ group, topics }) => {
      const consumer = client.db(databases[group]);
      const parked = consumer.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
      return {
        group,
        topics,
        inbox: await consumer.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox).find({ group }).toArray(),
        positions: await consumer
          .collection<PositionDocument>(CONSUMER_COLLECTIONS.positions)
          .find({ group })
          .toArray(),
        parked: await parked.find({ group, sequenced: true }).toArray(),
        setAside: await parked.countDocuments({ group, state: 'aside' } as object),
      };
    }),
  );
}
