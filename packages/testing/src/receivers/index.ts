export { startMailServer, type Mail, type MailServer } from './mail-server.js';
export { receiveOtlp, type OtlpReceiver, type ReceivedSpan } from './otlp-receiver.js';
export { receiveWebhooks, type Answer, type Delivery, type WebhookReceiver } from './webhook-receiver.js';
