import { CONSUMER_DEFAULTS } from '@nightporter/consumer';
import type { WorkerTuning } from './define-consumer.js';

export interface ShortLifetime {
  readonly handlerMs: number;
  readonly transactionMs: number;
  readonly transactionLifetimeLimitMs: number;
  readonly mend: string;
}

/**
 * What is wrong where the server may end a transaction before the worker does: a handler that keeps within its time is rolled back all the same.
 * Null where all is well, or the limit is not known (null).
 */
export function shortLifetime(limitMs: number | null, tuning: WorkerTuning = {}): ShortLifetime | null {
  const { handlerMs, transactionMs } = { ...CONSUMER_DEFAULTS, ...tuning };
  if (limitMs === null || limitMs > handlerMs + transactionMs) return null;
  const seconds = Math.floor((handlerMs + transactionMs) / 1_000) + 1;
  const command = `db.adminCommand({ setParameter: 1, transactionLifetimeLimitSeconds: ${seconds} })`;
  return {
    handlerMs,
    transactionMs,
    transactionLifetimeLimitMs: limitMs,
    mend: `${command} on every member, or a shorter tuning.handlerMs`,
  };
}
