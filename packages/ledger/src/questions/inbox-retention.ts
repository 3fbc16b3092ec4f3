import { CONSUMER_COLLECTIONS, durableDatabase, type InboxDocument } from '@nightporter/mongo';
import type { GroupPlace } from './deployment.js';

/** What workers keep records for by default, in milliseconds. */
export const INBOX_RETENTION_MS = 90 * 24 * 60 * 60 * 1_000;

/** How long a group keeps its records, in milliseconds; null where it has none. By one of them: a worker writes all of them alike. */
export async function inboxRetentionOf({ client, database, group }: GroupPlace): Promise<number | null> {
  const inbox = durableDatabase(client, database).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  const record = await inbox.findOne({ group }, { projection: { processedAt: 1, expireAt: 1 } });
  return record === null ? null : record.expireAt.getTime() - record.processedAt.getTime();
}
