import { BrokerError, type DeadLetterCopy, type DeadLetterSender } from '@nightporter/consumer';
import { assertEndpoints } from './client/grpc-target.js';
import { TopicProducer } from './client/topic-producer.js';
import { deadLetterMessage } from './dead-letter-message.js';
import { limitsOf, type ConnectionOptions } from './options.js';
import { classifySendFailure, describeError } from './publish-failure.js';

export interface DeadLetterSenderOptions extends ConnectionOptions {
  /** The topics of the group. Copies go to the topic that is called like theirs, see {@link deadLetterTopic}. */
  readonly topics: readonly [string, ...string[]];
}

export interface RocketmqDeadLetterSender extends DeadLetterSender {
  /** Waits for sends in flight, within the limit. Never rejects. */
  close(): Promise<void>;
}

/** Where the copies of one topic's dead letters go: a FIFO topic like itself. */
export function deadLetterTopic(topic: string): string {
  return `${topic}-dlt`;
}

/**
 * A {@link DeadLetterSender} on RocketMQ: one client per topic, started with its first copy, one attempt per call. What a group has read elsewhere
 * than in its topics (the broker's own dead letters) goes to the first of them.
 */
export function createDeadLetterSender(options: DeadLetterSenderOptions): RocketmqDeadLetterSender {
  assertEndpoints(options.endpoints);
  limitsOf(options);
  const { topics } = options;
  const producers = new Map<string, TopicProducer>();

  function producerOf(topic: string): TopicProducer {
    const producer = producers.get(topic) ?? new TopicProducer(options, topic);
    producers.set(topic, producer);
    return producer;
  }

  async function send(copy: DeadLetterCopy): Promise<void> {
    const topic = deadLetterTopic(topics.includes(copy.event.topic) ? copy.event.topic : topics[0]);
    const producer = producerOf(topic);
    try {
      await producer.send(deadLetterMessage(copy, topic));
    } catch (error) {
      if (classifySendFailure(error).failure === 'topic') producer.retire();
      const what = `RocketMQ: the copy of dead letter ${copy.event.envelope.eventId} was not taken by topic ${topic}`;
      throw new BrokerError(`${what}: ${describeError(error).text}`, { cause: error });
    }
  }

  return {
    send,
    close: async () => {
      await Promise.all([...producers.values()].map((producer) => producer.close()));
    },
  };
}
