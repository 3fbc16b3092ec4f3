import type { TraceContext } from '@nightporter/protocol';
import type { IncomingEvent } from './ports.js';

/**
 * Follows transactions and the handlers in them, for traces. Nothing depends on it: no call may throw or wait, and without it nothing is
 * done in its place.
 */
export interface ConsumerTracer {
  /** A try of a transaction that is to bring so many messages to an outcome begins. */
  transaction(messages: number): TransactionTrace;
}

export type TransactionEnd =
  | { readonly kind: 'committed' }
  /** Nothing of it is written; after NP_STORE_UNAVAILABLE it may be all the same. */
  | { readonly kind: 'failed'; readonly error: unknown };

export interface TransactionTrace {
  /** A handler is about to run; several in one transaction run one after another. */
  handling(run: { readonly event: IncomingEvent; readonly attempt: number }): HandlerTrace;
  /** Called once, last. Only now is it known what the handlers have achieved. */
  ended(end: TransactionEnd): void;
}

export interface HandlerTrace {
  /** What the handler emits names this as its trace. */
  readonly context: TraceContext;
  /** Runs the handler at once, and passes its outcome on. */
  run(handler: () => Promise<void>): Promise<void>;
}
