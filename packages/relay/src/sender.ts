import type { OutboxRow } from '@nightporter/contracts';
import { Wakeup, type LaneItem } from '@nightporter/protocol';
import type { MarkWriter } from './mark-writer.js';
import { PublishError } from './ports.js';
import type { SessionContext } from './session-context.js';
import { asError, limited } from './waiting.js';

/** Sends what the lanes allow, and has the outcome marked. */
export class Sender {
  readonly #context: SessionContext;
  readonly #marks: MarkWriter;
  /** Rings when a send has ended. */
  readonly ended = new Wakeup();
  #cancelTimer: (() => void) | null = null;

  constructor(context: SessionContext, marks: MarkWriter) {
    this.#context = context;
    this.#marks = marks;
  }

  /** Starts sends as long as the lanes have some, the rate allows them and `mayBegin` agrees, which is asked right before each. */
  begin(mayBegin: () => boolean): void {
    const { lanes, ports, rate, spawn } = this.#context;
    while (mayBegin()) {
      const nowMs = ports.clock.now();
      const waitMs = rate?.waitMs(nowMs) ?? 0;
      if (waitMs > 0) {
        this.#beginIn(waitMs);
        return;
      }
      const item = lanes.nextSend(nowMs);
      if (item === null) return;
      rate?.take();
      spawn(this.#send(item, item.row));
    }
  }

  close(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #beginIn(waitMs: number): void {
    this.#cancelTimer ??= this.#context.ports.clock.after(waitMs, () => {
      this.#cancelTimer = null;
      this.#context.pump();
    });
  }

  async #send(item: LaneItem<OutboxRow>, row: OutboxRow): Promise<void> {
    const { ports, options, over, epoch, progress, isOver } = this.#context;
    const { clock } = ports;
    progress.counts.attempts += 1;
    const startedAtMs = clock.now();
    let messageId: string;
    try {
      const publish = () => ports.publisher.publish({ row, relay: options.owner, epoch });
      ({ messageId } = await limited(publish, { clock, over, limitMs: options.sendMs, onLimit: unanswered }));
    } catch (error) {
      if (!isOver()) this.#failed(item, row, toPublishError(error));
      return;
    }
    if (!isOver()) this.#published(item, row, { messageId, startedAtMs });
  }

  #published(item: LaneItem<OutboxRow>, row: OutboxRow, sent: { messageId: string; startedAtMs: number }): void {
    const { lanes, ports, progress } = this.#context;
    const nowMs = ports.clock.now();
    const { messageId, startedAtMs } = sent;
    lanes.sent(item, nowMs);
    this.#marks.push({ kind: 'published', item, row, messageId });
    progress.counts.published += 1;
    progress.publishRate.add(nowMs);
    ports.observe({ kind: 'published', row, messageId, sendMs: nowMs - startedAtMs });
    this.#context.pump();
    this.ended.ring();
  }

  #failed(item: LaneItem<OutboxRow>, row: OutboxRow, error: PublishError): void {
    const { lanes, ports, progress } = this.#context;
    const verdict = lanes.failed(item, error, ports.clock.now());
    const { retryInMs } = verdict;
    if (verdict.kind === 'set-aside') {
      const { status, retryCount } = verdict;
      this.#marks.push({ kind: 'failed', item, row, status, retryCount, retryInMs, error: error.message });
    }
    progress.counts.sendFailures += 1;
    ports.observe({ kind: 'send-failed', row, error, retryInMs });
    this.#context.pump();
    this.ended.ring();
  }
}

function unanswered(message: string): PublishError {
  return new PublishError({ failure: 'transient', answered: false, message });
}

/** Whatever a publisher throws besides a PublishError is not understood: try again, and assume that it may have landed. */
function toPublishError(reason: unknown): PublishError {
  if (reason instanceof PublishError) return reason;
  const { message } = asError(reason);
  return new PublishError({ failure: 'transient', answered: false, message }, { cause: reason });
}
