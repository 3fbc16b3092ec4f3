import { expect, test } from 'vitest';
import { CONSUMER_DEFAULTS, resolveOptions } from './options.js';

test('what is not given has its default', () => {
  expect(resolveOptions({ receiveMax: 8 })).toEqual({ ...CONSUMER_DEFAULTS, receiveMax: 8 });
});

test.each([
  [{ receiveMax: 0 }, /receiveMax is 0/],
  [{ drainMs: 1.5 }, /drainMs is 1.5/],
  [{ attemptsMax: Number.NaN }, /attemptsMax is NaN/],
  [{ retryScheduleMs: [] }, /retryScheduleMs/],
  [{ retryScheduleMs: [100, -1] }, /retryScheduleMs is \[100, -1\]/],
  [{ claimMs: 30_000 }, /claimMs is 30000; it must be longer than handlerMs \(30000\)/],
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
