import type { ordersCatalogue } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { HandlersOf } from '@nightporter/worker';
import type { ClientSession } from 'mongodb';
import type { NotificationCollections } from './documents.js';
import { noticeOf, type Channel, type ToldEvent } from './domain/notice.js';
import { putDown } from './put-down.js';

type Events = typeof ordersCatalogue.events;

/**
 * Puts down whom to tell what; nothing is sent here. Strategy: naturally idempotent. Name and content of a notification are made of the
 * event alone, and what is there stays, so that even a new generation of the group, or a replay without inbox, tells nobody twice.
 */
export function createNotificationHandlers(
  collections: NotificationCollections,
  channels: readonly Channel[],
): HandlersOf<Events> {
  const tell = async ({ event, session }: { event: ToldEvent[keyof ToldEvent]; session: ClientSession }) => {
    const { customerId } = await recipientOf(event.aggregateId, session, collections);
    for (const channel of channels) {
      await putDown(collections, { ...noticeOf(event, customerId), channel }, session);
    }
  };
  return {
    OrderCreated: async (context) => {
      const { event, session } = context;
      const { customerId } = event.data;
      await collections.recipients.updateOne(
        { _id: event.aggregateId },
        { $set: { customerId } },
        { session, upsert: true },
      );
      await tell(context);
    },
    OrderPaid: tell,
    OrderCancelled: tell,
    OrderCompleted: tell,
    SurplusPaymentReceived: tell,
  };
}

async function recipientOf(orderId: string, session: ClientSession, { recipients }: NotificationCollections) {
  const recipient = await recipients.findOne({ _id: orderId }, { session });
  if (recipient !== null) return recipient;
  // OrderCreated is version 1, and the group began with it, or with orders that were placed before it did.
  throw new NightporterError(
    'NP_INTERNAL',
    `order ${orderId} was placed before this group began, so that nobody knows whom to tell of it`,
  );
}
