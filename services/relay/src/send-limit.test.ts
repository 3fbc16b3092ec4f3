import { describe, expect, it } from 'vitest';
import { sendLimitMs } from './send-limit.js';

describe('the limit of a send', () => {
  it.each([
    [15_000, 3_000, 6_500],
    [6_501, 3_000, 6_500],
    [3_000, 1_000, 2_500],
  ])('with a lease of %d ms and requests of %d ms is %d ms', (leaseMs, sendTimeoutMs, expected) => {
    expect(sendLimitMs({ leaseMs, sendTimeoutMs })).toBe(expected);
  });

  it('is refused where the lease may run out before it, with the values and the accepted range', () => {
    expect(() => sendLimitMs({ leaseMs: 6_500, sendTimeoutMs: 3_000 })).toThrow(
      'LEASE_MS is 6500, and with SEND_TIMEOUT_MS 3000 a send may take 6500 ms; accepted: more than 6500 ms.',
    );
  });
});
