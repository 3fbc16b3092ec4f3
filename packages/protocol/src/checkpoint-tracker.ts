import { Fifo } from './fifo.js';
import type { ResumeToken } from './ids.js';

/** Something that was delivered and will be settled: its row is published or otherwise settled, or deferred. */
export interface Delivery {
  settle(): void;
}

class TrackedDelivery implements Delivery {
  token: ResumeToken;
  readonly endsBatch: boolean;
  settled: boolean;

  constructor(token: ResumeToken, endsBatch: boolean) {
    this.token = token;
    this.endsBatch = endsBatch;
    this.settled = endsBatch;
  }

  settle(): void {
    this.settled = true;
  }
}

/**
 * Which resume token may be saved: the one behind the longest prefix of what one stream delivered in which everything is
 * settled or deferred (invariant I5). A batch's own token stands behind the batch's rows and is settled by itself, so the
 * token of an idle stream moves on exactly when nothing delivered before it is open.
 */
export class CheckpointTracker {
  readonly #max: number;
  readonly #open = new Fifo<TrackedDelivery>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Deliveries that the prefix has still to pass. */
  get size(): number {
    return this.#open.size;
  }

  /** While false, nothing more may be read from the stream. */
  get hasRoom(): boolean {
    return this.#open.size < this.#max;
  }

  /** A row that the stream delivered; resuming after `token` continues behind it. */
  deliver(token: ResumeToken): Delivery {
    const delivery = new TrackedDelivery(token, false);
    this.#open.push(delivery);
    return delivery;
  }

  /** The end of a batch. Empty batches behind an open row need one place together. */
  endBatch(token: ResumeToken): void {
    const last = this.#open.last();
    if (last?.endsBatch === true) last.token = token;
    else this.#open.push(new TrackedDelivery(token, true));
  }

  /** Moves over everything settled; the token to save, or null when the prefix did not grow. */
  advance(): ResumeToken | null {
    let token: ResumeToken | null = null;
    for (let first = this.#open.peek(); first?.settled === true; first = this.#open.peek()) {
      token = first.token;
      this.#open.shift();
    }
    return token;
  }
}
