import { describeConfig, loadConfig } from '@nightporter/runtime';
import { describe, expect, it } from 'vitest';
import { assertUsable, notificationSettings } from './settings.js';

const use = (environment: Record<string, string>) => () => {
  assertUsable(loadConfig(notificationSettings, environment));
};
const webhook = { CHANNELS: 'webhook', WEBHOOK_URL: 'https://example.com/hook' };

describe('the settings of the notification worker', () => {
  it('are usable as they are, and with what a channel needs', () => {
    expect(use({})).not.toThrow();
    expect(use(webhook)).not.toThrow();
    expect(use({ CHANNELS: 'log,smtp', SMTP_URL: 'smtp://mail', MAIL_FROM: 'Shop <a@b.example>' })).not.toThrow();
  });

  it.each([
    [{ CHANNELS: 'webhook' }, /needs WEBHOOK_URL/],
    [{ ...webhook, WEBHOOK_URL: 'file:///etc/passwd' }, /needs WEBHOOK_URL/],
    [
      { ...webhook, WEBHOOK_URL: 'https://user:word@example.com/hook' },
      /needs WEBHOOK_URL .*without user and password/,
    ],
    [{ ...webhook, WEBHOOK_URL: 'https://user@example.com/hook' }, /needs WEBHOOK_URL/],
    [{ CHANNELS: 'smtp', SMTP_URL: 'mail:25' }, /needs SMTP_URL.*MAIL_FROM/],
    [{ CHANNELS: 'pigeon' }, /CHANNELS is "pigeon"/],
    [{ SEND_TIMEOUT_MS: '30000' }, /DELIVERY_CLAIM_MS is 30000, which a send may outlast/],
  ])('are refused where they do not fit each other: %j', (environment, message) => {
    expect(use(environment as unknown as Record<string, string>)).toThrow(message);
  });

  it('are logged at the start without what an address keeps to itself', () => {
    const logged = describeConfig(notificationSettings, { WEBHOOK_URL: 'https://user:word@example.com/hook?key=1' });
    expect(logged['WEBHOOK_URL']).toBe('https://(hidden)@example.com/hook?(hidden)');
  });
});
