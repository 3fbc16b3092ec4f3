import { encodeEnvelope, envelopeOf, MESSAGE_PROPERTIES } from '@nightporter/contracts';
import type { Delivery, Subscriber } from '@nightporter/consumer';
import type { PublishRequest } from '@nightporter/relay';

/** How long a receive waits for a delivery, as a broker's does. */
const WAIT_MS = 200;

/** A subscription into which a test puts its deliveries one by one, at the instant that it chooses. */
export class HandedOver implements Subscriber {
  #next: { readonly delivery: Delivery; readonly acknowledged: () => void } | null = null;
  #rung: () => void = () => undefined;
  readonly #open = new Map<string, () => void>();

  /** Resolves once it is acknowledged. */
  hand(delivery: Delivery): Promise<void> {
    return new Promise((resolve) => {
      this.#next = { delivery, acknowledged: resolve };
      this.#rung();
    });
  }

  async receive(): Promise<readonly Delivery[]> {
    if (this.#next === null) {
      await new Promise<void>((resolve) => {
        this.#rung = resolve;
        setTimeout(resolve, WAIT_MS);
      });
    }
    const next = this.#take();
    if (next === null) return [];
    this.#open.set(next.delivery.messageId, next.acknowledged);
    return [next.delivery];
  }

  acknowledge(deliveries: readonly Delivery[]): Promise<void> {
    for (const { messageId } of deliveries) this.#open.get(messageId)?.();
    return Promise.resolve();
  }

  extend(deliveries: readonly Delivery[]): Promise<readonly Delivery[]> {
    return Promise.resolve(deliveries);
  }

  #take(): { readonly delivery: Delivery; readonly acknowledged: () => void } | null {
    const next = this.#next;
    this.#next = null;
    return next;
  }
}

/** The delivery of what the relay would send. */
export function deliveryOf({ row }: PublishRequest): Delivery {
  return {
    messageId: row.eventId,
    topic: row.topic,
    body: encodeEnvelope(envelopeOf(row, row.form)),
    properties: { [MESSAGE_PROPERTIES.form]: row.form, [MESSAGE_PROPERTIES.digest]: row.digest },
    deliveryAttempt: 1,
    receipt: null,
  };
}
