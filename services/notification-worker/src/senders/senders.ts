import type { Logger } from '@nightporter/runtime';
import type { Sender } from '../delivery/ports.js';
import type { Channel } from '../domain/notice.js';
import type { NotificationConfig } from '../settings.js';
import { createLogSender } from './log.js';
import { createSmtpSender } from './smtp.js';
import { createWebhookSender } from './webhook.js';

/** A sender for each channel of the configuration. */
export function createSenders(config: NotificationConfig, logger: Logger): Partial<Record<Channel, Sender>> {
  const make: Readonly<Record<Channel, () => Sender>> = {
    log: () => createLogSender(logger),
    // Settings that a channel needs are there: assertUsable has seen to it.
    webhook: () => createWebhookSender({ url: config.webhookUrl ?? '', token: config.webhookToken }),
    smtp: () =>
      createSmtpSender({
        url: config.smtpUrl ?? '',
        from: config.mailFrom ?? '',
        domain: config.mailDomain,
        timeoutMs: config.sendTimeoutMs,
        connectionsMax: config.deliveriesMax,
      }),
  };
  return Object.fromEntries(config.channels.map((channel) => [channel, make[channel]()]));
}
