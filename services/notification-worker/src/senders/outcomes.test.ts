import { describe, expect, it } from 'vitest';
import { mailAddressOf } from './mail-address.js';
import { smtpOutcome } from './smtp.js';
import { webhookOutcome } from './webhook.js';

describe('the answer of a webhook', () => {
  it.each([200, 201, 202, 204])('%d means that it was taken', (status) => {
    expect(webhookOutcome(status, new Headers({ 'x-request-id': 'r1' }))).toEqual({ kind: 'sent', receipt: 'r1' });
  });

  it.each([400, 410, 413, 415, 422])('%d is about this notification, and final', (status) => {
    expect(webhookOutcome(status, new Headers()).kind).toBe('permanent');
  });

  it.each([301, 302, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503])(
    '%d can be mended, and is tried again',
    (status) => {
      expect(webhookOutcome(status, new Headers()).kind).toBe('transient');
    },
  );

  it('may ask for time, in whole seconds', () => {
    expect(webhookOutcome(503, new Headers({ 'retry-after': '7' }))).toMatchObject({ afterMs: 7_000 });
    expect(webhookOutcome(503, new Headers({ 'retry-after': 'tomorrow' }))).not.toHaveProperty('afterMs');
  });
});

describe('the answer of a mail server', () => {
  it.each([
    ['a refused recipient', { responseCode: 550, command: 'RCPT TO', message: 'no such box' }, 'permanent'],
    ['a refused content', { responseCode: 554, command: 'DATA', message: 'looks like spam' }, 'permanent'],
    ['a box that is full for now', { responseCode: 452, command: 'RCPT TO', message: 'full' }, 'transient'],
    ['a refused connection', { responseCode: 554, command: 'CONN', message: 'no service here' }, 'transient'],
    ['a refused sender', { responseCode: 550, command: 'MAIL FROM', message: 'not from you' }, 'transient'],
    ['a log-in that failed', { responseCode: 535, command: 'AUTH PLAIN', message: 'wrong' }, 'transient'],
    ['a log-in that is missing', { responseCode: 530, command: 'RCPT TO', message: 'log in first' }, 'transient'],
    ['no connection', { code: 'ECONNREFUSED', message: 'refused' }, 'transient'],
  ] as const)('%s is %s', (_name, error, kind) => {
    expect(smtpOutcome(Object.assign(new Error(error.message), error))).toEqual({ kind, reason: error.message });
  });
});

describe('a mail address', () => {
  it.each([
    ['ada@example.com', null, 'ada@example.com'],
    ['customer-7', 'example.com', 'customer-7@example.com'],
    ['customer-7', null, null],
    ['customer 7', 'example.com', null],
    ['ada@example.com\r\nBcc: eve@example.com', null, null],
    ['ada@exa mple.com', null, null],
    ['a..b@example.com', null, null],
    ['@example.com', 'example.com', null],
    ['ada@example.com, eve@example.com', null, null],
    ['"ada"@example.com', null, null],
  ])('of %j with domain %j is %j', (recipient, domain, address) => {
    expect(mailAddressOf(recipient, domain)).toBe(address);
  });
});
