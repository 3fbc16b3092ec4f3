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
    ['a refused recipient', { responseCode: 550, code: 'EENVELOPE', message: 'no such box' }, 'permanent'],
    ['a box that is full for now', { responseCode: 452, code: 'EENVELOPE', message: 'full' }, 'transient'],
    ['a log-in that failed', { responseCode: 535, code: 'EAUTH', message: 'wrong' }, 'transient'],
    ['a log-in that is missing', { responseCode: 530, code: 'EENVELOPE', message: 'log in first' }, 'transient'],
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
