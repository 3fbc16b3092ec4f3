import { PublishError, type Publication, type Publisher, type PublishRequest } from '@nightporter/relay';
import { assertEndpoints } from './client/grpc-target.js';
import { StartFailedError, TopicProducer } from './client/topic-producer.js';
import { messageOf, type OutgoingMessage } from './message.js';
import { limitsOf, type ConnectionOptions } from './options.js';
import { classifySendFailure, classifyStartFailure, describeError } from './publish-failure.js';

export interface PublisherOptions extends ConnectionOptions {
  /** Started at creation. Other topics that rows name are started with their first row. */
  readonly topics: readonly string[];
}

export interface RocketmqPublisher extends Publisher {
  /** Waits for sends in flight, within the limit; afterwards nothing of the publisher holds the process. Never rejects. */
  close(): Promise<void>;
}

/** Each topic has a client of its own; an outbox that names more topics than this is broken. */
const TOPICS_MAX = 256;

/**
 * A {@link Publisher} on RocketMQ: one client per topic, one attempt per call. Resolves also while the broker is down or a topic is
 * missing: `publish` then rejects, and tries to start the topic's client again with each call.
 *
 * The order within a message group is the caller's: sends of one group that overlap may arrive in any order.
 */
export async function createPublisher(options: PublisherOptions): Promise<RocketmqPublisher> {
  assertEndpoints(options.endpoints);
  limitsOf(options);
  const publisher = new TopicPublisher(options);
  await publisher.startAll(options.topics);
  return publisher;
}

class TopicPublisher implements RocketmqPublisher {
  readonly #options: PublisherOptions;
  readonly #topics = new Map<string, TopicProducer>();
  #closed = false;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  /** A topic that cannot be started now is told by the first `publish` for it. */
  async startAll(topics: readonly string[]): Promise<void> {
    await Promise.all(
      topics.map(async (topic) => {
        try {
          await this.#producerOf(topic)?.start();
        } catch (error) {
          this.#options.log?.('warn', `${String(error)} ${describeError(error).text}`);
        }
      }),
    );
  }

  async publish(request: PublishRequest): Promise<Publication> {
    const { row } = request;
    const verdict = messageOf(request);
    switch (verdict.kind) {
      case 'message':
        return { messageId: await this.#send(request, verdict.message) };
      case 'illegal-message':
        throw failed(row, { failure: 'permanent', answered: true }, verdict.reason);
      case 'illegal-topic':
        throw failed(row, { failure: 'topic', answered: true }, verdict.reason);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#topics.values()].map((producer) => producer.close()));
  }

  async #send({ row }: PublishRequest, message: OutgoingMessage): Promise<string> {
    if (this.#closed) throw failed(row, { failure: 'transient', answered: true }, 'the publisher has been closed.');
    const producer = this.#producerOf(message.topic);
    if (producer === null) {
      const reason = `this publisher already sends to ${TOPICS_MAX} topics; accepted: no more.`;
      throw failed(row, { failure: 'topic', answered: true }, reason);
    }
    try {
      return await producer.send(message);
    } catch (error) {
      const verdict = error instanceof StartFailedError ? classifyStartFailure(error) : classifySendFailure(error);
      if (verdict.failure === 'topic') producer.retire();
      throw failed(row, verdict, describeError(error).text, error);
    }
  }

  #producerOf(topic: string): TopicProducer | null {
    const known = this.#topics.get(topic);
    if (known !== undefined) return known;
    if (this.#topics.size >= TOPICS_MAX) return null;
    const producer = new TopicProducer(this.#options, topic);
    this.#topics.set(topic, producer);
    return producer;
  }
}

function failed(
  row: PublishRequest['row'],
  verdict: Pick<PublishError, 'failure' | 'answered'>,
  reason: string,
  cause?: unknown,
): PublishError {
  const message = `Event ${row.eventId} was not taken by topic ${row.topic}: ${reason}`;
  return new PublishError({ failure: verdict.failure, answered: verdict.answered, message }, { cause });
}
