import { isNightporterError } from '@nightporter/protocol';
import type { ParkedFailure } from './ports.js';

/** Thrown inside a transaction to roll it back when the consumer must end. */
export class RolledBack extends Error {
  constructor() {
    super('The consumer is stopping; the transaction is rolled back.');
    this.name = 'RolledBack';
  }
}

/** Whose a failed transaction is: nobody's (decide anew), the database's, ours (we stop), an invariant's, or the message's. */
export type FailureClass = 'conflict' | 'unavailable' | 'rolled-back' | 'broken' | 'failed';

const CAUSES_MAX = 10;
const MESSAGE_LENGTH_MAX = 2_000;
const STACK_LENGTH_MAX = 8_000;

/**
 * Looks through the causes too: a handler that wraps the database's error does not make it its own, and must not be
 * charged for it.
 */
export function classify(error: unknown): FailureClass {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1, cause = cause.cause) {
    if (cause instanceof RolledBack) return 'rolled-back';
    if (isNightporterError(cause, 'NP_TRANSACTION_CONFLICT')) return 'conflict';
    if (isNightporterError(cause, 'NP_STORE_UNAVAILABLE')) return 'unavailable';
    if (isNightporterError(cause, 'NP_INTERNAL')) return 'broken';
  }
  return 'failed';
}

/** A failure as it is parked with its event, cut to a size that a document can keep. */
export function parkedFailureOf(error: unknown): ParkedFailure {
  const code = isNightporterError(error) ? error.code : 'NP_HANDLER_FAILED';
  if (!(error instanceof Error)) return { code, message: textOf(error).slice(0, MESSAGE_LENGTH_MAX), stack: null };
  const message = error.message === '' ? error.name : error.message;
  return {
    code,
    message: message.slice(0, MESSAGE_LENGTH_MAX),
    stack: error.stack?.slice(0, STACK_LENGTH_MAX) ?? null,
  };
}

/** Anything can be thrown, also what has no text. */
function textOf(thrown: unknown): string {
  try {
    return `A handler threw ${typeof thrown}: ${String(thrown)}`;
  } catch {
    return `A handler threw a ${typeof thrown} that has no text.`;
  }
}
