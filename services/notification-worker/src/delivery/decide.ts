import { decideRetry, type Random, type RetryPolicy } from '@nightporter/protocol';
import type { DeliveryVerdict, SendOutcome } from './ports.js';

/** What follows when the attempt numbered `attempts` came to `outcome`. A receiver may ask for more time, within the longest delay. */
export function decideDelivery(
  outcome: SendOutcome,
  { attempts, policy, capMs, random }: { attempts: number; policy: RetryPolicy; capMs: number; random: Random },
): DeliveryVerdict {
  switch (outcome.kind) {
    case 'sent':
      return outcome;
    case 'permanent':
      return { kind: 'dead', because: 'permanent', reason: outcome.reason };
    case 'transient': {
      const next = decideRetry(policy, attempts, random);
      if (next.kind === 'dead') return { kind: 'dead', because: 'transient', reason: outcome.reason };
      const delayMs = Math.max(next.delayMs, Math.min(capMs, outcome.afterMs ?? 0));
      return { kind: 'retry', delayMs, reason: outcome.reason };
    }
  }
}
