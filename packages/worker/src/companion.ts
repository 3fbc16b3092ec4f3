import type { MetricTable, Metrics } from '@nightporter/runtime';

/**
 * Work that a worker does beside its consumer, in the same process, such as sending what its handlers have only put down. It begins once
 * the worker is registered, and ends with it.
 */
export interface Companion {
  /** Its name in readiness and status. */
  readonly name: string;
  /** Pending while it works. Settling without being asked to stop ends the service, whether it resolves or rejects. */
  run(): Promise<void>;
  /** Finishes or gives back what is in hand, and lets go of everything, within about the time that it was made with. */
  stop(): Promise<void>;
  /** Null when all is well, else why it makes no progress. */
  health(): string | null;
  /** Its figures for `/status`. */
  snapshot(): unknown;
}

export interface CompanionLimits {
  /** How long the work in hand may take once the worker stops. */
  readonly drainMs: number;
  /** For figures of its own: `metrics.extend(TABLE)`, told on the worker's `/metrics`. */
  readonly metrics: Pick<Metrics<MetricTable>, 'extend'>;
}
