import type { ConsumerObserver, GroupStore, Subscriber } from '@nightporter/consumer';
import type { ClientSession } from 'mongodb';

/** Counts between the engine and its ports. The clock runs from its start, or from the first message received, to the last event settled. */
export class Meter {
  transactions = 0;
  acknowledgeRequests = 0;
  settled = 0;
  #firstMs = 0;
  #lastMs = 0;

  start(): void {
    this.#firstMs = performance.now();
  }

  get ms(): number {
    return Math.round(this.#lastMs - this.#firstMs);
  }

  readonly observe: ConsumerObserver = (event) => {
    if (event.kind === 'received' && this.#firstMs === 0) this.#firstMs = performance.now();
    if (event.kind !== 'settled') return;
    this.settled += 1;
    this.#lastMs = performance.now();
  };

  subscriber(real: Subscriber): Subscriber {
    return {
      receive: (request) => real.receive(request),
      extend: (deliveries, invisibleMs) => real.extend(deliveries, invisibleMs),
      acknowledge: (deliveries) => {
        this.acknowledgeRequests += 1;
        return real.acknowledge(deliveries);
      },
    };
  }

  store(real: GroupStore<ClientSession>): GroupStore<ClientSession> {
    return {
      transact: (work) => {
        this.transactions += 1;
        return real.transact(work);
      },
    };
  }
}
