import { NightporterError, backoffMs, isNightporterError } from '@nightporter/protocol';
import { setTimeout as delay } from 'node:timers/promises';

/** How long a transaction that keeps losing is begun anew: longer than the transactions of retention or of a registration take. */
export const CONFLICT_MS_DEFAULT = 30_000;

/** A conflict is known at once, and whoever won it may take seconds: the waits grow, so that losing is no load. */
const BACKOFF = { firstMs: 5, maxMs: 250 };

export interface ConflictWait {
  /** Default {@link CONFLICT_MS_DEFAULT}. */
  readonly conflictMs?: number;
  /** Ends the wait with the conflict at hand. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a transaction of ours again while it loses to concurrent ones, or is given up by a server that is too busy to finish it within its
 * limit. Rejects with NP_STORE_UNAVAILABLE once that has gone on for `conflictMs`, and
 * with the error of the transaction itself once `signal` says so.
 */
export async function untilNoConflict<Result>(
  operation: string,
  run: () => Promise<Result>,
  { conflictMs = CONFLICT_MS_DEFAULT, signal }: ConflictWait = {},
): Promise<Result> {
  const startedMs = performance.now();
  for (let conflicts = 1; ; conflicts += 1) {
    try {
      return await run();
    } catch (error) {
      if (!isLost(error) || signal?.aborted === true) throw error;
      const forMs = Math.round(performance.now() - startedMs);
      if (forMs >= conflictMs) throw lostFor({ operation, conflicts, forMs, conflictMs }, error);
      await pause(Math.min(backoffMs(BACKOFF, conflicts, Math.random), conflictMs - forMs), signal);
    }
  }
}

/** Nothing of it was written, and the next run may be luckier. */
function isLost(error: unknown): error is NightporterError {
  return isNightporterError(error, 'NP_TRANSACTION_CONFLICT') || isNightporterError(error, 'NP_TRANSACTION_ABORTED');
}

interface Lost {
  readonly operation: string;
  readonly conflicts: number;
  readonly forMs: number;
  readonly conflictMs: number;
}

function lostFor({ operation, conflicts, forMs, conflictMs }: Lost, cause: NightporterError): NightporterError {
  const message =
    `${operation}: ${conflicts} conflicts in a row in ${forMs} ms, and the limit is ${conflictMs} ms. Nothing was written. Another transaction ` +
    'keeps what this one has to change and does not end, such as the registration of a group or a retention; it can be repeated.';
  return new NightporterError('NP_STORE_UNAVAILABLE', message, { cause });
}

async function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(delayMs, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  }
}
