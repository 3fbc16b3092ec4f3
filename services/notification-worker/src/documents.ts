import { durableDatabase } from '@nightporter/mongo';
import type { Collection, Db, MongoClient } from 'mongodb';
import type { Channel, Notice } from './domain/notice.js';

/**
 * A document of `notifications`: that somebody is to be told something, and what has come of it. A handler only puts it down; it is
 * sent later, outside of any transaction.
 *
 *   pending ──▶ sent
 *      │  ▲
 *      ▼  │ an operator's retry
 *     dead ──▶ sent (an answer that came late)
 *
 * `sent` always wins. Every other change is made only at the `revision` that was read, and raises it.
 */
export interface NotificationDocument extends Notice {
  /** The idempotency key, made of event, channel and recipient: the same for every copy that is ever sent. */
  readonly _id: string;
  readonly channel: Channel;
  readonly state: 'pending' | 'sent' | 'dead';
  /** Counted when it is claimed, so that one whose worker dies each time comes to an end too. */
  readonly attempts: number;
  /** Not before this moment of the database's clock; while it is claimed, when the claim runs out. */
  readonly nextAttemptAt: Date;
  readonly revision: number;
  readonly sentAt?: Date;
  /** What the receiver said to it, such as the number that a mail server gave. */
  readonly receipt?: string | null;
  readonly lastFailure?: { readonly kind: 'transient' | 'permanent'; readonly message: string; readonly at: Date };
  /** Who has had it sent again after it was dead, and why. */
  readonly retries?: readonly { readonly by: string; readonly reason: string; readonly at: Date }[];
}

/** A document of `recipients`: whom to tell of an order. Only OrderCreated says whose it is. */
export interface RecipientDocument {
  /** orderId */
  readonly _id: string;
  readonly customerId: string;
}

export interface NotificationCollections {
  readonly notifications: Collection<NotificationDocument>;
  readonly recipients: Collection<RecipientDocument>;
}

export function notificationCollections(database: Db): NotificationCollections {
  return {
    notifications: database.collection<NotificationDocument>('notifications'),
    recipients: database.collection<RecipientDocument>('recipients'),
  };
}

/** The same for what is done outside of the handlers' transactions: what it says was sent must not be rolled back. */
export function durableNotifications(client: MongoClient, database: string): NotificationCollections {
  return notificationCollections(durableDatabase(client, database));
}

/** Creates collections and indexes where they are missing; safe to call at every start, from several processes at once. */
export async function ensureNotificationCollections(client: MongoClient, database: string): Promise<void> {
  const { notifications, recipients } = notificationCollections(client.db(database));
  await notifications.createIndex({ state: 1, nextAttemptAt: 1 });
  await notifications.createIndex({ orderId: 1 });
  // A transaction should not be the one that creates a collection: concurrent ones would conflict over it.
  await recipients.createIndex({ customerId: 1 });
}
