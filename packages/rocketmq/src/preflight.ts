import type { AdminOptions, ConnectionOptions } from './options.js';

export interface TopicPreflight extends ConnectionOptions, AdminOptions {
  readonly topic: string;
}

export interface TopicFacts {
  readonly topic: string;
  /** Queues over all brokers. Changing it moves message groups to other queues. */
  readonly queueCount: number;
}

/**
 * Refuses a topic that is missing (NP_PREFLIGHT_TOPIC_MISSING) or does not take FIFO messages (NP_PREFLIGHT_TOPIC_TYPE); the message
 * holds the `mqadmin` command that mends it. NP_BROKER_UNAVAILABLE when it could not be found out.
 */
export function preflightTopic(options: TopicPreflight): Promise<TopicFacts> {
  return Promise.reject(new Error(`not written yet: ${options.topic}`));
}

export interface GroupPreflight extends ConnectionOptions, AdminOptions {
  readonly group: string;
  readonly topic: string;
  /** Fewest redeliveries before the broker puts a message into its own dead-letter queue; default 100. */
  readonly retryTimesMin?: number;
}

export interface GroupFacts {
  readonly group: string;
  /** Redeliveries before the broker puts a message into its own dead-letter queue. */
  readonly retryTimesMax: number;
}

/**
 * Refuses a group that is missing (NP_PREFLIGHT_GROUP_MISSING), reads out of order (NP_PREFLIGHT_GROUP_UNORDERED) or gives messages up
 * too early (NP_PREFLIGHT_GROUP_RETRIES); the message holds the `mqadmin` command that mends it. NP_BROKER_UNAVAILABLE when it
 * could not be found out.
 */
export function preflightGroup(options: GroupPreflight): Promise<GroupFacts> {
  return Promise.reject(new Error(`not written yet: ${options.group}`));
}
