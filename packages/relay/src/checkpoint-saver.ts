import { CheckpointTracker, type ResumeToken } from '@nightporter/protocol';
import { OVER } from './database-calls.js';
import type { SessionContext } from './session-context.js';
import { isOutage } from './waiting.js';

/**
 * Saves the token behind everything that is settled or deferred: one save at a time, at most every `checkpointEveryMs`
 * (every `idleCheckpointEveryMs` while only the token of an idle stream moves), and only while nothing may be missing from
 * the lanes: not before the first sweep has settled all that it found, nor again while a disturbed or lost stream is
 * made good by another.
 */
export class CheckpointSaver {
  readonly #context: SessionContext;
  #tracker: CheckpointTracker;
  #seq = 0;
  #savedSeq = 0;
  #allowed = false;
  #closing = false;
  #candidate: ResumeToken | null = null;
  #rowsMoved = false;
  #saving: Promise<void> | null = null;
  #cancelTimer: (() => void) | null = null;
  #lastSavedAtMs = -Infinity;
  #uncoveredSinceMs: number | null = null;

  constructor(context: SessionContext) {
    this.#context = context;
    this.#tracker = new CheckpointTracker(context.options.trackedMax);
  }

  /** Deliveries of the stream that is followed now. */
  get tracker(): CheckpointTracker {
    return this.#tracker;
  }

  get savedSeq(): number {
    return this.#savedSeq;
  }

  /** Since when something delivered has waited for a checkpoint that moves; null when all of it is covered. */
  get uncoveredSinceMs(): number | null {
    return this.#uncoveredSinceMs;
  }

  /** A fresh stream: what the one before delivered is left to the sweep, and its tokens are of no more use. */
  startAnew(): void {
    this.#tracker = new CheckpointTracker(this.#context.options.trackedMax);
    this.#candidate = null;
    this.#uncoveredSinceMs = null;
  }

  forbid(): void {
    this.#allowed = false;
  }

  allow(): void {
    this.#allowed = true;
    // What was delivered while no save was allowed has waited for nothing that a save could have done.
    this.#uncoveredSinceMs = null;
    this.touch({ idle: false });
  }

  /** Something may have been settled. `idle` when only an empty batch came in. */
  touch({ idle }: { idle: boolean }): void {
    const token = this.#tracker.advance();
    if (token !== null) {
      this.#candidate = token;
      this.#rowsMoved ||= !idle;
      this.#context.room.ring();
    }
    if (this.#isUncovered()) this.#uncoveredSinceMs ??= this.#context.ports.clock.now();
    this.#schedule();
  }

  /** The last save before the lease is given back: one attempt. */
  async saveLast(): Promise<void> {
    this.#closing = true;
    this.#stopTimer();
    await this.#saving;
    this.touch({ idle: false });
    if (!this.#isWanted()) return;
    const { calls, ports, isOver } = this.#context;
    try {
      await calls.once(() => this.#save());
    } catch (error) {
      if (isOver()) return;
      if (!isOutage(error)) throw error;
      ports.observe({ kind: 'database-unavailable', operation: 'checkpoints.save', error });
    }
  }

  close(): void {
    this.#stopTimer();
  }

  #isUncovered(): boolean {
    return this.#candidate !== null || this.#tracker.size > 0;
  }

  #isWanted(): boolean {
    return this.#allowed && this.#candidate !== null;
  }

  #schedule(): void {
    if (!this.#isWanted() || this.#saving !== null || this.#closing || this.#context.isOver()) return;
    const { options, ports } = this.#context;
    const everyMs = this.#rowsMoved ? options.checkpointEveryMs : options.idleCheckpointEveryMs;
    const waitMs = this.#lastSavedAtMs + everyMs - ports.clock.now();
    this.#stopTimer();
    if (waitMs > 0) {
      this.#cancelTimer = ports.clock.after(waitMs, () => {
        this.#schedule();
      });
      return;
    }
    this.#saving = this.#saveUntilDone();
    this.#context.spawn(this.#saving);
  }

  async #saveUntilDone(): Promise<void> {
    const result = await this.#context.calls.untilDone('checkpoints.save', () => this.#save());
    this.#saving = null;
    if (result !== OVER) this.#schedule();
  }

  /** Every attempt has a new number: an earlier one that lands late is refused, and one that did land refuses no other. */
  async #save(): Promise<void> {
    const { ports, shard, epoch, progress } = this.#context;
    const token = this.#candidate;
    if (token === null || !this.#allowed) return;
    this.#seq += 1;
    const seq = this.#seq;
    const answer = await ports.checkpoints.save({ shard: shard.id, epoch, seq, token });
    if (this.#context.isOver()) return;
    if (answer === 'fenced') {
      progress.counts.fenced += 1;
      this.#context.finish('fenced');
      return;
    }
    if (this.#candidate === token) {
      this.#candidate = null;
      this.#rowsMoved = false;
    }
    this.#savedSeq = seq;
    this.#lastSavedAtMs = ports.clock.now();
    this.#uncoveredSinceMs = this.#isUncovered() ? this.#lastSavedAtMs : null;
    progress.counts.checkpointsSaved += 1;
    progress.checkpointAtMs = progress.aheadAtMs = this.#lastSavedAtMs;
    ports.observe({ kind: 'checkpoint-saved', shard: shard.id, seq });
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }
}
