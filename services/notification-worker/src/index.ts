export { createDeadNotifications, type DeadNotifications } from './dead.js';
export { createDelivery } from './delivery/create-delivery.js';
export { DeliveryLoop, type DeliveryOptions, type DeliverySnapshot } from './delivery/loop.js';
export { createDeliveryQueue } from './delivery/mongo-queue.js';
export type {
  ClaimedNotification,
  DeliveryQueue,
  DeliveryVerdict,
  Notification,
  QueueFigures,
  SendOutcome,
  Sender,
} from './delivery/ports.js';
export {
  ensureNotificationCollections,
  notificationCollections,
  type NotificationCollections,
  type NotificationDocument,
  type RecipientDocument,
} from './documents.js';
export { idempotencyKey, TOLD_TYPES, type Channel, type Notice } from './domain/notice.js';
export { createNotificationHandlers } from './handlers.js';
export { DELIVERY_METRICS } from './metrics-table.js';
export { putDown } from './put-down.js';
export { createSmtpSender, type SmtpOptions } from './senders/smtp.js';
export { createWebhookSender, type WebhookOptions } from './senders/webhook.js';
export { createNotificationWorker } from './service.js';
