import { ordersCatalogue } from '@nightporter/contracts';
import * as notification from '@nightporter/notification-worker';
import { setting, text } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';

const EVERY = 3;
const oneLine = text({ charactersMax: 500 });

/** Thanks customers by mail for every third order. Strategy: inbox; the counter needs no care of its own. */
export const loyaltyWorker = defineConsumer({
  name: 'loyalty-worker',
  description: 'Thanks customers by mail for every third order that they got.',
  port: 3021,
  database: 'loyalty',
  group: 'loyalty',
  source: 'loyalty',
  catalogue: ordersCatalogue,
  subscriptions: [{ producer: 'orders', topic: 'orders-events' }],
  settings: {
    smtpUrl: setting({ name: 'SMTP_URL', kind: oneLine, description: 'The mail server.', secret: 'credentials' }),
    mailFrom: setting({ name: 'MAIL_FROM', kind: oneLine, description: 'Sender of the mails.' }),
  },
  prepare: async ({ client, database }) => {
    await notification.ensureNotificationCollections(client, database.databaseName);
    await database.collection('customers').createIndex({ completed: 1 });
  },
  handlers: ({ database }) => {
    const { recipients, notifications } = notification.notificationCollections(database);
    const customers = database.collection<{ _id: string; completed: number }>('customers');
    return {
      OrderCreated: async ({ event, session }) => {
        const { customerId } = event.data;
        await recipients.updateOne({ _id: event.aggregateId }, { $set: { customerId } }, { session, upsert: true });
      },
      OrderCompleted: async ({ event, session }) => {
        const { aggregateId: orderId, eventId, eventType, occurredAt } = event;
        const order = await recipients.findOne({ _id: orderId }, { session });
        if (order === null) throw new Error(`nobody knows whose order ${orderId} is`);
        const once = { session, upsert: true, returnDocument: 'after' } as const;
        const customer = await customers.findOneAndUpdate({ _id: order.customerId }, { $inc: { completed: 1 } }, once);
        const completed = customer?.completed ?? 0;
        if (completed % EVERY !== 0) return;
        const words = { subject: `Thank you for ${completed} orders`, text: 'The next parcel is on us.' };
        const notice = { recipient: order.customerId, orderId, eventId, eventType, occurredAt, ...words };
        await notification.putDown({ notifications }, { ...notice, channel: 'smtp' }, session);
      },
    };
  },
  companion: (resources, { drainMs }) => {
    const { smtpUrl: url, mailFrom: from } = resources.config;
    const smtp = notification.createSmtpSender({ url, from, domain: null, timeoutMs: 10_000, connectionsMax: 2 });
    return notification.createDelivery(resources, { senders: { smtp }, drainMs });
  },
});
