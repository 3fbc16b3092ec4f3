import { NightporterError } from '@nightporter/protocol';
import { worstSendMs } from '@nightporter/rocketmq';

/** The publisher's own limit speaks first, since it knows whether the broker may have stored the message. */
const SLACK_MS = 500;

/**
 * How long the relay waits for a send at most. Throws NP_CONFIG_INVALID where the lease may run out before that: another relay would take
 * over while messages of this one are still on their way.
 */
export function sendLimitMs({ leaseMs, sendTimeoutMs }: { leaseMs: number; sendTimeoutMs: number }): number {
  const sendMs = worstSendMs({ requestTimeoutMs: sendTimeoutMs }) + SLACK_MS;
  if (leaseMs > sendMs) return sendMs;
  throw new NightporterError(
    'NP_CONFIG_INVALID',
    `LEASE_MS is ${leaseMs}, and with SEND_TIMEOUT_MS ${sendTimeoutMs} a send may take ${sendMs} ms; accepted: more than ${sendMs} ms.`,
  );
}
