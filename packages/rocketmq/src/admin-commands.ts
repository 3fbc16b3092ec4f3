import type { AdminOptions } from './options.js';

/** What is asked for where there is nothing to keep. */
const QUEUES_PER_BROKER = 8;
const RETRY_TIMES = 10_000;

export interface TopicCommand extends AdminOptions {
  readonly topic: string;
  /** Default 8. Another number than the present one moves message groups to other queues. */
  readonly queuesPerBroker?: number;
}

export interface GroupCommand extends AdminOptions {
  readonly group: string;
  /** Default 10,000, and never less: a healthy message must not reach the broker's dead-letter queue. */
  readonly retryTimesMin?: number;
}

/** The `mqadmin` command that creates a topic as {@link preflightTopic} wants it, or mends one. */
export function topicCommand(options: TopicCommand): string {
  const queues = options.queuesPerBroker ?? QUEUES_PER_BROKER;
  return `mqadmin updateTopic ${cluster(options)} -t ${options.topic} -r ${queues} -w ${queues} -o true -a +message.type=FIFO`;
}

/** The `mqadmin` command that creates a consumer group as {@link preflightGroup} wants it, or mends one. */
export function groupCommand(options: GroupCommand): string {
  const retryTimes = Math.max(RETRY_TIMES, options.retryTimesMin ?? 0);
  return `mqadmin updateSubGroup ${cluster(options)} -g ${options.group} -o true -r ${retryTimes}`;
}

function cluster(options: AdminOptions): string {
  return `-n ${options.nameServer ?? '"$NAMESRV_ADDR"'} -c ${options.cluster ?? 'DefaultCluster'}`;
}
