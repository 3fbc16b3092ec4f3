import type { Publisher } from '@nightporter/relay';
import type { ConnectionOptions } from './options.js';

export interface PublisherOptions extends ConnectionOptions {
  /** Started at creation. Other topics that rows name are started with their first row. */
  readonly topics: readonly string[];
}

export interface RocketmqPublisher extends Publisher {
  /** Waits for sends in flight, within the limit; afterwards nothing of the publisher holds the process. Never rejects. */
  close(): Promise<void>;
}

/**
 * A {@link Publisher} on RocketMQ. Resolves also while the broker is down or a topic is missing: `publish` then rejects, and
 * tries to start the topic's client again with each call.
 */
export function createPublisher(options: PublisherOptions): Promise<RocketmqPublisher> {
  return Promise.reject(new Error(`not written yet: ${options.endpoints}`));
}
