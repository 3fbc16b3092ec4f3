import type { Backoff } from './backoff.js';
import type { FailureLimits } from './publish-failure.js';

export interface LaneLimits {
  /** Sends in flight. */
  readonly windowMax: number;
  /** Rows in memory before reading should stop. */
  readonly bufferMax: number;
  /** Whether a row is claimed before it is sent: what a polling relay does. */
  readonly claims: boolean;
  readonly heldLanesMax: number;
  readonly rememberedLanesMax: number;
  /** Rows of one lane that one read brings. */
  readonly laneRowsMax: number;
  /** How often a lane behind a DEAD or claimed row is read again … */
  readonly heldReadEveryMs: number;
  /** … and how seldom at most, when very many are held. */
  readonly heldReadEveryMaxMs: number;
}

export interface LanePolicy extends LaneLimits, FailureLimits {
  readonly transientBackoff: Backoff;
  readonly topicBackoff: Backoff;
  /** Between the attempts at a FAILED row. */
  readonly failedBackoff: Backoff;
}

/** Spreads the reads of held lanes: no more than one in so many milliseconds. */
const HELD_READ_SPACING_MS = 10;

export function heldReadDelayMs({ heldReadEveryMs, heldReadEveryMaxMs }: LaneLimits, heldLanes: number): number {
  const spacedMs = Math.max(heldReadEveryMs, heldLanes * HELD_READ_SPACING_MS);
  return Math.min(spacedMs, Math.max(heldReadEveryMs, heldReadEveryMaxMs));
}
