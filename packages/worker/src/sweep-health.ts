import type { ConsumerEvent } from '@nightporter/consumer';
import type { Clock } from '@nightporter/protocol';

/** A round may fail this late: the database's driver waits for an answer about as long. */
const SLOW_ROUND_MS = 30_000;
/** What is over within this time is nobody's business: a restart of the database, or of a producer's console. */
const PATIENCE_MS = 120_000;

export interface SweepHealth {
  heard(event: ConsumerEvent): void;
  /** Why the group's sweep makes no progress, in a sentence; null where it does, or has not failed for long. */
  reason(): string | null;
}

/**
 * Whether the group's ledger sweep has failed for long: each round, for two minutes and for several rounds. A member whose turn it is not
 * sweeps nothing and tells nothing, so silence is health, and a reason goes away when no further round has failed in the time that two take.
 */
export function createSweepHealth(
  clock: Pick<Clock, 'now'>,
  { sweepEveryMs }: { readonly sweepEveryMs: number },
): SweepHealth {
  const silenceMs = 2 * sweepEveryMs + SLOW_ROUND_MS;
  const patienceMs = Math.max(PATIENCE_MS, 3 * sweepEveryMs);
  let failing: { readonly fromMs: number; readonly lastMs: number; readonly what: string } | null = null;
  return {
    heard(event) {
      const what = failureIn(event);
      if (what === null) return;
      const now = clock.now();
      const goesOn = failing !== null && now - failing.lastMs <= silenceMs;
      failing = { fromMs: goesOn && failing !== null ? failing.fromMs : now, lastMs: now, what };
    },
    reason() {
      if (failing === null) return null;
      const now = clock.now();
      const { fromMs, lastMs, what } = failing;
      if (now - lastMs > silenceMs || lastMs - fromMs < patienceMs) return null;
      return `${what} for ${Math.round((now - fromMs) / 1_000)} s: what the broker loses is not found meanwhile`;
    },
  };
}

function failureIn(event: ConsumerEvent): string | null {
  if (event.kind === 'unregistered') return 'the group has not been registered with a producer';
  const isSweep = event.kind === 'ledger-unavailable' && event.operation === 'sweep';
  return isSweep ? 'the ledger sweep has failed' : null;
}
