export type TopicType = 'FIFO' | 'NORMAL' | 'DELAY' | 'TRANSACTION';

export interface TopicRequest {
  name: string;
  /** Default FIFO. */
  type?: TopicType;
  /** Default 8. Another count for a topic that exists moves message groups to other queues. */
  queues?: number;
  /** Default true. False refuses every send to the topic, which is how a whole topic goes wrong. */
  writable?: boolean;
}

export interface GroupRequest {
  name: string;
  /** Default true. A group that is not ordered reads a FIFO topic out of order. */
  ordered?: boolean;
  /** After that many redeliveries the broker moves a message to its own dead-letter topic. Default 1,000,000: never in practice. */
  retryMaxTimes?: number;
  /**
   * Topics on which the group's position is set to the present end, where it has none, so that whatever is sent after this call is
   * delivered. Elsewhere the broker decides at the group's first receive, and may begin at the end of that moment.
   */
  topics?: string[];
}

export interface QueueOffsets {
  queueId: number;
  minOffset: number;
  /** The offset that the next message will have. */
  maxOffset: number;
  /** The next offset to be acknowledged by the group, or undefined when it has no position here. */
  committedOffset: number | undefined;
  /** Messages between the two, or undefined without a position. */
  lag: number | undefined;
}

export interface RewindRequest {
  topic: string;
  group: string;
  /** Clamped to what the queue holds. Default 0: everything that the broker still has. */
  offset?: number;
  /** Default: every queue of the topic. */
  queueId?: number;
}

/** What an owner may ask of a broker. Each call resolves once its effect can be relied upon. */
export interface RocketMqAdmin {
  /** Creates a topic or changes it; it can be sent to and received from at once, also by clients that asked for it too early. */
  createTopic(topic: TopicRequest): Promise<void>;
  /** Creates a consumer group or changes its settings. */
  createGroup(group: GroupRequest): Promise<void>;
  /** How far each queue of a topic is filled, and how far a group has come in it. */
  offsets(request: { topic: string; group?: string }): Promise<QueueOffsets[]>;
  /** Moves a group's position; what was in flight is delivered again, from the group's next receive on. */
  rewind(request: RewindRequest): Promise<void>;
}

/** One request to the launcher, without its id. */
export type Ask = (request: { operation: string } & Record<string, unknown>) => Promise<unknown>;

const QUEUES_DEFAULT = 8;
const RETRY_MAX_TIMES_DEFAULT = 1_000_000;
const EVERY_QUEUE = -1;

/** Fills the defaults in and speaks the launcher's language. */
export function rocketMqAdmin(ask: Ask): RocketMqAdmin {
  return {
    createTopic: async ({ name, type = 'FIFO', queues = QUEUES_DEFAULT, writable = true }) => {
      await ask({ operation: 'createTopic', name, type, queues, writable });
    },
    createGroup: async ({ name, ordered = true, retryMaxTimes = RETRY_MAX_TIMES_DEFAULT, topics = [] }) => {
      await ask({ operation: 'createGroup', name, ordered, retryMaxTimes, topics });
    },
    offsets: async (request) => parseOffsets(await ask({ operation: 'offsets', ...request })),
    rewind: async ({ topic, group, offset = 0, queueId = EVERY_QUEUE }) => {
      await ask({ operation: 'rewind', topic, group, offset, queueId });
    },
  };
}

function parseOffsets(answer: unknown): QueueOffsets[] {
  const queues = answer as { queueId: number; minOffset: number; maxOffset: number; committedOffset: number }[];
  return queues.map(({ committedOffset, ...queue }) => ({
    ...queue,
    committedOffset: committedOffset < 0 ? undefined : committedOffset,
    lag: committedOffset < 0 ? undefined : queue.maxOffset - committedOffset,
  }));
}
