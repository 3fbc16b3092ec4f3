export { startMailServer, type Mail, type MailServer } from './mail-server.js';
export { receiveWebhooks, type Answer, type Delivery, type WebhookReceiver } from './webhook-receiver.js';
