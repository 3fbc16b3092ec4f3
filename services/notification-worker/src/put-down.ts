import type { ClientSession } from 'mongodb';
import type { NotificationCollections } from './documents.js';
import { idempotencyKey, type Channel, type Notice } from './domain/notice.js';

/** Due at once: whatever the clocks of producers and workers say. */
const AT_ONCE = new Date(0);

/**
 * Puts a notification down, in the transaction of a handler; nothing is sent here. One that is there already stays as it is, also when it
 * was sent.
 */
export async function putDown(
  { notifications }: Pick<NotificationCollections, 'notifications'>,
  notice: Notice & { readonly channel: Channel },
  session: ClientSession,
): Promise<void> {
  await notifications.updateOne(
    { _id: idempotencyKey(notice) },
    { $setOnInsert: { ...notice, state: 'pending', attempts: 0, nextAttemptAt: AT_ONCE, revision: 1 } },
    { session, upsert: true },
  );
}
