import { BrokerError } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import { groupCommand, topicCommand } from './admin-commands.js';
import { assertEndpoints } from './client/grpc-target.js';
import { askForGroup, askForTopic } from './client/probe.js';
import type { AdminOptions, ConnectionOptions } from './options.js';
import { judgeGroup, judgeTopic } from './preflight-verdict.js';
import { describeError } from './publish-failure.js';

export interface TopicPreflight extends ConnectionOptions, AdminOptions {
  readonly topic: string;
}

export interface TopicFacts {
  readonly topic: string;
  /** Queues over all brokers. Changing it moves message groups to other queues. */
  readonly queueCount: number;
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

/** One partial acknowledgement or restart redelivers a whole batch, so that healthy messages collect redeliveries, too. */
const RETRY_TIMES_MIN = 100;

/**
 * Refuses a topic that is missing (NP_PREFLIGHT_TOPIC_MISSING) or does not take FIFO messages (NP_PREFLIGHT_TOPIC_TYPE); the message
 * holds the `mqadmin` command that mends it. NP_BROKER_UNAVAILABLE when it could not be found out. A proxy remembers for some 20 s
 * that a topic was missing.
 */
export async function preflightTopic(options: TopicPreflight): Promise<TopicFacts> {
  assertEndpoints(options.endpoints);
  const { topic } = options;
  const answer = await askForTopic(options, topic).catch((error: unknown) => {
    throw unknown(`topic ${topic}`, error);
  });
  const verdict = judgeTopic(answer);
  switch (verdict.kind) {
    case 'ready':
      return { topic, queueCount: verdict.queueCount };
    case 'missing':
      throw new NightporterError(
        'NP_PREFLIGHT_TOPIC_MISSING',
        `RocketMQ has no topic ${topic}. Create it: ${topicCommand(options)}`,
      );
    case 'wrong-type':
      throw new NightporterError(
        'NP_PREFLIGHT_TOPIC_TYPE',
        `Topic ${topic} takes ${verdict.types.join(', ') || 'no'} messages; accepted: FIFO. Mend it: ${topicCommand({ ...options, queuesPerBroker: verdict.queuesPerBroker })}`,
      );
    case 'unusable':
      throw new NightporterError(
        'NP_PREFLIGHT_TOPIC_TYPE',
        `Topic ${topic} has no queue that can be both read and written. Mend it: ${topicCommand({ ...options, queuesPerBroker: verdict.queuesPerBroker })} -p 6`,
      );
  }
}

/**
 * Refuses a group that is missing (NP_PREFLIGHT_GROUP_MISSING), reads out of order (NP_PREFLIGHT_GROUP_UNORDERED) or gives messages up
 * too early (NP_PREFLIGHT_GROUP_RETRIES); the message holds the `mqadmin` command that mends it. NP_BROKER_UNAVAILABLE when it
 * could not be found out.
 */
export async function preflightGroup(options: GroupPreflight): Promise<GroupFacts> {
  assertEndpoints(options.endpoints);
  const { group, topic } = options;
  const answer = await askForGroup(options, group, topic).catch((error: unknown) => {
    throw unknown(`consumer group ${group}`, error);
  });
  const retryTimesMin = options.retryTimesMin ?? RETRY_TIMES_MIN;
  const verdict = judgeGroup(answer, retryTimesMin);
  const command = groupCommand({ ...options, retryTimesMin });
  switch (verdict.kind) {
    case 'ready':
      return { group, retryTimesMax: verdict.retryTimesMax };
    case 'missing':
      throw new NightporterError(
        'NP_PREFLIGHT_GROUP_MISSING',
        `RocketMQ has no consumer group ${group}. Create it: ${command}`,
      );
    case 'unordered':
      throw new NightporterError(
        'NP_PREFLIGHT_GROUP_UNORDERED',
        `Consumer group ${group} reads out of order; accepted: ordered consumption. Mend it: ${command}`,
      );
    case 'few-retries':
      throw new NightporterError(
        'NP_PREFLIGHT_GROUP_RETRIES',
        `Consumer group ${group} has retryMaxTimes ${verdict.retryTimesMax}; accepted: ${retryTimesMin} or more. Mend it: ${command}`,
      );
  }
}

function unknown(what: string, cause: unknown): BrokerError {
  return new BrokerError(`RocketMQ could not be asked for ${what}: ${describeError(cause).text}`, { cause });
}
