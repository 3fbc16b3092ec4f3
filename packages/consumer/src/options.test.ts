import { expect, test } from 'vitest';
import { CONSUMER_DEFAULTS, resolveOptions, type ConsumerOptions } from './options.js';

const exponential = { kind: 'exponential', firstMs: 100, factor: 2, capMs: 60_000, jitter: 0.5 } as const;

test('exponential waits, and inboxes that remember for years, are taken as they are given', () => {
  const given = { retryDelays: exponential, inboxRetentionMs: 10 * 365 * 24 * 3_600_000 };
  expect(resolveOptions(given)).toEqual({ ...CONSUMER_DEFAULTS, ...given });
});

test('what is not given has its default', () => {
  expect(resolveOptions({ receiveMax: 8 })).toEqual({ ...CONSUMER_DEFAULTS, receiveMax: 8 });
});

test.each<[Partial<ConsumerOptions>, RegExp]>([
  [{ receiveMax: 0 }, /receiveMax is 0/],
  [{ drainMs: 1.5 }, /drainMs is 1.5/],
  [{ attemptsMax: Number.NaN }, /attemptsMax is NaN/],
  [{ retryScheduleMs: [] }, /retryScheduleMs/],
  [{ retryScheduleMs: [100, -1] }, /retryScheduleMs is \[100, -1\]/],
  [{ retryScheduleMs: [Infinity] }, /retryScheduleMs is \[Infinity\].* each a whole number from 0 to 31536000000/],
  [{ retryDelays: { kind: 'schedule', delaysMs: [] } }, /retryDelays is \[\]; it needs one delay or more/],
  [{ retryDelays: { ...exponential, firstMs: 0 } }, /retryDelays.firstMs is 0; it must be a whole number from 1 to/],
  [{ retryDelays: { ...exponential, capMs: Infinity } }, /retryDelays.capMs is Infinity; .* from firstMs \(100\) to/],
  [{ retryDelays: { ...exponential, capMs: 99 } }, /retryDelays.capMs is 99; .* from firstMs \(100\) to/],
  [{ retryDelays: { ...exponential, factor: 0.5 } }, /retryDelays.factor is 0.5; it must be a number from 1 to 100/],
  [{ retryDelays: { ...exponential, factor: NaN } }, /retryDelays.factor is NaN/],
  [{ retryDelays: { ...exponential, jitter: 2 } }, /retryDelays.jitter is 2; it must be a number from 0 to 1/],
  [{ ledgerEveryMs: 2 ** 31 }, /ledgerEveryMs is 2147483648; it must be a whole number from 1 to 2147483647/],
  [{ claimMs: 34_999 }, /claimMs is 34999; it must be handlerMs \(30000\) and transactionMs \(5000\) together or more/],
  [
    { inboxRetentionMs: 1_000, brokerRetentionMs: 501 },
    /inboxRetentionMs is 1000; it must be twice brokerRetentionMs \(501\) or more/,
  ],
  [
    { handlerMs: 56_000, claimMs: 90_000 },
    /handlerMs \(56000\) and transactionMs \(5000\).*transactionLifetimeMs \(60000\)/,
  ],
])('%o is refused with the value and the range', (given, message) => {
  expect(() => resolveOptions(given)).toThrow(message);
  expect(() => resolveOptions(given)).toThrow(expect.objectContaining({ code: 'NP_CONFIG_INVALID' }));
});
