import type { Subscriber } from '@nightporter/consumer';
import type { ConnectionOptions } from './options.js';

export interface SubscriberOptions extends ConnectionOptions {
  readonly group: string;
  readonly topic: string;
  /** How long `receive` waits for a first message; default 2,000. The proxy may raise it to its own minimum (5,000 as delivered). */
  readonly waitMs?: number;
}

export interface RocketmqSubscriber extends Subscriber {
  /** Ends pending receives and closes, within the limit; afterwards nothing of the subscriber holds the process. Never rejects. */
  close(): Promise<void>;
}

/**
 * A {@link Subscriber} on RocketMQ. Resolves also while the broker is down or the topic is missing: calls then reject with
 * BrokerError, and `receive` tries to start the client again with each call. A new group starts at the end of its topic; what was
 * published before is the ledger sweep's.
 */
export function createSubscriber(options: SubscriberOptions): Promise<RocketmqSubscriber> {
  return Promise.reject(new Error(`not written yet: ${options.endpoints}`));
}
