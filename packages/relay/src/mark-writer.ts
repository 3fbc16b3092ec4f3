import type { OutboxRow } from '@nightporter/contracts';
import { Fifo, NightporterError, Wakeup, type LaneItem } from '@nightporter/protocol';
import { OVER } from './database-calls.js';
import type { Mark, MarkOutcome } from './ports.js';
import type { SessionContext } from './session-context.js';

/** A mark that is still to be written, with the row as it was sent. */
export type PendingMark = { readonly item: LaneItem<OutboxRow>; readonly row: OutboxRow } & (
  | { readonly kind: 'published'; readonly messageId: string }
  | {
      readonly kind: 'failed';
      readonly status: 'FAILED' | 'DEAD';
      readonly retryCount: number;
      readonly retryInMs: number;
      readonly error: string;
    }
  | { readonly kind: 'unanswered' }
  | { readonly kind: 'claimed' }
);

/**
 * Writes marks in batches, one batch at a time: after `markEveryMs`, or at once when a batch is full or the one before has just
 * been written. A batch is repeated until the database answers. What the end of the session leaves unwritten is sent once
 * more by the next owner.
 */
export class MarkWriter {
  readonly #context: SessionContext;
  readonly #onWritten: () => void;
  readonly #pending = new Fifo<PendingMark>();
  readonly #emptied = new Wakeup();
  #writing = false;
  #cancelTimer: (() => void) | null = null;

  constructor(context: SessionContext, onWritten: () => void) {
    this.#context = context;
    this.#onWritten = onWritten;
  }

  /** Rings when everything is written. */
  get emptied(): Wakeup {
    return this.#emptied;
  }

  get isEmpty(): boolean {
    return !this.#writing && this.#pending.size === 0;
  }

  push(mark: PendingMark): void {
    this.#pending.push(mark);
    if (this.#writing) return;
    const { options, ports } = this.#context;
    if (this.#pending.size >= options.markBatchMax) this.#start();
    else this.#cancelTimer ??= ports.clock.after(options.markEveryMs, this.#start);
  }

  close(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  readonly #start = (): void => {
    this.close();
    if (this.#writing || this.#context.isOver()) return;
    this.#writing = true;
    this.#context.spawn(this.#writeAll());
  };

  async #writeAll(): Promise<void> {
    const { calls, ports } = this.#context;
    for (let batch = this.#takeBatch(); batch.length > 0; batch = this.#takeBatch()) {
      const taken = batch;
      const outcomes = await calls.untilDone('marker.mark', () =>
        ports.marker.mark(taken.map((mark) => this.#toMark(mark))),
      );
      if (outcomes === OVER) return;
      this.#apply(taken, outcomes);
      this.#onWritten();
      this.#context.pump();
    }
    this.#writing = false;
    this.#emptied.ring();
  }

  #takeBatch(): readonly PendingMark[] {
    const batch: PendingMark[] = [];
    while (batch.length < this.#context.options.markBatchMax) {
      const mark = this.#pending.shift();
      if (mark === undefined) break;
      batch.push(mark);
    }
    return batch;
  }

  #toMark(mark: PendingMark): Mark {
    const { row, item } = mark;
    const { options, epoch, ports } = this.#context;
    const target = { namespace: row.namespace, eventId: row.eventId, relay: options.owner, epoch };
    switch (mark.kind) {
      case 'published': {
        const sinceCaptureMs = Math.max(0, Math.round(ports.clock.now() - item.sightedAtMs));
        const { messageId } = mark;
        return { ...target, kind: 'published', messageId, topic: row.topic, form: row.form, sinceCaptureMs };
      }
      case 'failed': {
        const { status, retryCount, retryInMs, error } = mark;
        return { ...target, kind: 'failed', revision: row.revision, status, retryCount, retryInMs, error };
      }
      case 'unanswered':
      case 'claimed':
        return { ...target, kind: mark.kind, revision: row.revision };
    }
  }

  #apply(batch: readonly PendingMark[], outcomes: readonly MarkOutcome[]): void {
    const { ports, progress } = this.#context;
    const written = { published: 0, failed: 0, refused: 0, missing: 0 };
    const nowMs = ports.clock.now();
    batch.forEach((mark, index) => {
      const outcome = outcomes[index];
      if (outcome === undefined) {
        throw new NightporterError(
          'NP_INTERNAL',
          `The marker gave ${outcomes.length} outcomes for ${batch.length} marks.`,
        );
      }
      if (outcome.kind !== 'done') written[outcome.kind] += 1;
      else if (mark.kind === 'published' || mark.kind === 'failed') written[mark.kind] += 1;
      this.#applyOne(mark, outcome, nowMs);
    });
    // A mark that is refused leaves its row as it was: the relay has got no further.
    if (written.refused < batch.length) progress.markedAtMs = progress.aheadAtMs = nowMs;
    progress.counts.refused += written.refused;
    progress.counts.missing += written.missing;
    ports.observe({ kind: 'marked', ...written });
  }

  #applyOne(mark: PendingMark, { kind: result }: MarkOutcome, nowMs: number): void {
    const { lanes, progress, ports } = this.#context;
    const isDone = result === 'done';
    switch (mark.kind) {
      case 'published':
        if (isDone) progress.counts.markedPublished += 1;
        lanes.markedPublished(mark.item, result, nowMs);
        return;
      case 'failed':
        if (isDone && mark.status === 'FAILED') progress.counts.markedFailed += 1;
        if (isDone && mark.status === 'DEAD') {
          progress.counts.markedDead += 1;
          ports.observe({ kind: 'dead', row: mark.row, error: mark.error });
        }
        lanes.markedFailed(mark.item, { result, status: mark.status, retryInMs: mark.retryInMs }, nowMs);
        return;
      case 'unanswered':
        lanes.recorded(mark.item, result, nowMs);
        return;
      case 'claimed':
        if (isDone) progress.counts.claimed += 1;
        lanes.claimed(mark.item, { result, revision: mark.row.revision }, nowMs);
        return;
    }
  }
}
