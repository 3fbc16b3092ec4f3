import { OUTBOX_COLLECTIONS, type GroupDocument } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';

/** Services that write events, each with the topic of its events, as the catalogue of the worked example has them. */
export const TOPICS = { orders: 'orders-events', inventory: 'inventory-events', shipping: 'shipping-events' } as const;
export type Producer = keyof typeof TOPICS;
export const PRODUCERS = Object.keys(TOPICS) as readonly Producer[];

/** The groups of the shop and what they read. Each has the name of its database. */
export const READS = {
  inventory: [TOPICS.orders],
  points: [TOPICS.orders],
  notification: [TOPICS.orders],
  shipping: [TOPICS.inventory],
  orders: [TOPICS.inventory, TOPICS.shipping],
  warehouse: [TOPICS.orders, TOPICS.inventory, TOPICS.shipping],
} as const satisfies Record<string, readonly string[]>;
export type Group = keyof typeof READS;
export const GROUPS = Object.keys(READS) as readonly Group[];

/** The group whose effects are checked one by one, and whose messages are delivered again. */
export const STOCK_GROUP = 'inventory' satisfies Group;

export type Databases = Readonly<Record<Group | Producer | 'relay', string>>;

/** A database that others use too must not show us their orders. */
export function databasesFor(prefix: string): Databases {
  const names = ['orders', 'inventory', 'shipping', 'points', 'notification', 'warehouse', 'relay'] as const;
  return Object.fromEntries(names.map((name) => [name, `${prefix}${name}`])) as Databases;
}

/** The groups that are registered with any producer, with all topics that they read. */
export async function registeredGroups(
  client: MongoClient,
  databases: Databases,
): Promise<readonly { readonly group: Group; readonly topics: readonly string[] }[]> {
  const topicsOf = new Map<string, string[]>();
  for (const producer of PRODUCERS) {
    const groups = client.db(databases[producer]).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
    for (const { _id: group, topics } of await groups.find({ topics: { $exists: true } }).toArray())
      topicsOf.set(group, [...(topicsOf.get(group) ?? []), ...topics]);
  }
  return [...topicsOf].map(([group, topics]) => ({ group: group as Group, topics }));
}
