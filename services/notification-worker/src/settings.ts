import { NightporterError } from '@nightporter/protocol';
import { choice, integer, list, optionalText, setting, type ConfigOf } from '@nightporter/runtime';
import { CHANNELS } from './domain/notice.js';

export const notificationSettings = {
  channels: setting({
    name: 'CHANNELS',
    kind: list(choice(CHANNELS), { itemsMax: CHANNELS.length }),
    default: 'log',
    description:
      'By which ways customers are told, each in a notification of its own; what waits for another way stays where it is.',
  }),
  webhookUrl: setting({
    name: 'WEBHOOK_URL',
    kind: optionalText({ charactersMax: 2_048 }),
    default: '',
    description:
      'Where notifications are posted to, with their key in Idempotency-Key; needed for the channel webhook.',
    secret: 'credentials',
  }),
  webhookToken: setting({
    name: 'WEBHOOK_TOKEN',
    kind: optionalText({ charactersMax: 1_024 }),
    default: '',
    description: 'Bearer token for WEBHOOK_URL, where it asks for one.',
    secret: 'whole',
  }),
  smtpUrl: setting({
    name: 'SMTP_URL',
    kind: optionalText({ charactersMax: 2_048 }),
    default: '',
    description: 'The mail server, smtp://user:password@host:port or smtps://…; needed for the channel smtp.',
    secret: 'credentials',
  }),
  mailFrom: setting({
    name: 'MAIL_FROM',
    kind: optionalText({ charactersMax: 320 }),
    default: '',
    description: 'Sender of the mails, whose domain also ends their Message-IDs; needed for the channel smtp.',
  }),
  mailDomain: setting({
    name: 'MAIL_DOMAIN',
    kind: optionalText({ charactersMax: 253 }),
    default: '',
    description: 'Domain of customers whose id is no mail address; without it there is no telling them by mail.',
  }),
  deliveriesMax: setting({
    name: 'DELIVERIES_MAX',
    kind: integer({ min: 1, max: 256 }),
    default: '16',
    description: 'Notifications that are being sent at once.',
  }),
  deliveryPollMs: setting({
    name: 'DELIVERY_POLL_MS',
    kind: integer({ min: 50, max: 60_000 }),
    unit: 'ms',
    default: '500',
    description: 'How often it is looked for notifications while there are none.',
  }),
  sendTimeoutMs: setting({
    name: 'SEND_TIMEOUT_MS',
    kind: integer({ min: 100, max: 300_000 }),
    unit: 'ms',
    default: '10000',
    description:
      'How long a receiver may take to answer; then the notification is sent again later, with the same key.',
  }),
  deliveryClaimMs: setting({
    name: 'DELIVERY_CLAIM_MS',
    kind: integer({ min: 1_000, max: 3_600_000 }),
    unit: 'ms',
    default: '30000',
    description:
      'How long a notification is kept from the other workers while one sends it; longer than SEND_TIMEOUT_MS by a second at least. What a killed worker was sending is sent again after that.',
  }),
  deliveryAttemptsMax: setting({
    name: 'DELIVERY_ATTEMPTS_MAX',
    kind: integer({ min: 1, max: 10_000 }),
    default: '30',
    description: 'Attempts before a notification is dead; with the delays below, after some six hours.',
  }),
  deliveryRetryFirstMs: setting({
    name: 'DELIVERY_RETRY_FIRST_MS',
    kind: integer({ min: 10, max: 3_600_000 }),
    unit: 'ms',
    default: '1000',
    description:
      'Delay after the first failure, on the database’s clock; it doubles, with up to a quarter of chance on top.',
  }),
  deliveryRetryCapMs: setting({
    name: 'DELIVERY_RETRY_CAP_MS',
    kind: integer({ min: 10, max: 86_400_000 }),
    unit: 'ms',
    default: '900000',
    description: 'Longest delay.',
  }),
};

export type NotificationConfig = ConfigOf<typeof notificationSettings>;

const MARGIN_MS = 1_000;

/** Refuses, with NP_CONFIG_INVALID, what only shows where settings meet. */
export function assertUsable(config: NotificationConfig): void {
  const { channels, webhookUrl, smtpUrl, mailFrom, sendTimeoutMs, deliveryClaimMs } = config;
  const missing = [
    ...(channels.includes('webhook') && !isHttp(webhookUrl)
      ? ['WEBHOOK_URL (http:// or https://, without user and password)']
      : []),
    ...(channels.includes('smtp') && !/^smtps?:\/\//.test(smtpUrl ?? '') ? ['SMTP_URL (smtp:// or smtps://)'] : []),
    ...(channels.includes('smtp') && !/@[^@\s]+$/.test(mailFrom ?? '') ? ['MAIL_FROM (a mail address)'] : []),
  ];
  if (missing.length > 0)
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `CHANNELS is ${channels.join(',')}, which needs ${missing.join(', ')}.`,
    );
  if (deliveryClaimMs < sendTimeoutMs + MARGIN_MS) {
    throw new NightporterError(
      'NP_CONFIG_INVALID',
      `DELIVERY_CLAIM_MS is ${deliveryClaimMs}, which a send may outlast, so that two workers would send one notification; accepted: SEND_TIMEOUT_MS (${sendTimeoutMs}) and ${MARGIN_MS} ms more, or longer.`,
    );
  }
}

/** `fetch` refuses an address with a user or a password, in a message that holds both. */
function isHttp(url: string | null): boolean {
  if (url === null || !URL.canParse(url)) return false;
  const { protocol, username, password } = new URL(url);
  return /^https?:$/.test(protocol) && username === '' && password === '';
}
