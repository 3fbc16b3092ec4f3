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

/** Why a sender rejected. `fetch` hides what happened in the cause; one that tried several addresses has a code and no message. */
export function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  if (cause.message !== '') return cause.message;
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : String(error);
}
