import { expect, test } from 'vitest';
import { RELAY_DEFAULTS, relayOptions } from './options.js';

test('a send ends before the lease by default', () => {
  expect(RELAY_DEFAULTS.sendMs).toBeLessThan(RELAY_DEFAULTS.leaseMs);
});

test('a lease that a send may outlast is refused, with both values', () => {
  expect(() => relayOptions({ owner: 'me', leaseMs: 10_000, sendMs: 10_000 })).toThrow(
    'Relay option sendMs is 10000; accepted: less than leaseMs, which is 10000.',
  );
  expect(relayOptions({ owner: 'me', leaseMs: 10_001, sendMs: 10_000 }).leaseMs).toBe(10_001);
});
