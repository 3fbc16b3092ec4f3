import { BrokerError, type Delivery, type Subscriber } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import { isStale, judgeAcknowledgement } from './ack-outcome.js';
import { assertEndpoints } from './client/grpc-target.js';
import { Received, TopicConsumer } from './client/topic-consumer.js';
import { assertDuration, limitsOf, type ClientLog, type ConnectionOptions } from './options.js';
import { describeError } from './publish-failure.js';

export interface SubscriberOptions extends ConnectionOptions {
  readonly group: string;
  readonly topic: string;
  /** How long `receive` waits for a first message; default 2,000. The proxy may raise it to its own minimum (5,000 as delivered). */
  readonly waitMs?: number;
}

export interface RocketmqSubscriber extends Subscriber {
  /** Ends pending receives (they resolve empty) and closes, within the limit; afterwards nothing of the subscriber holds the process. Never rejects. */
  close(): Promise<void>;
}

const WAIT_MS = 2_000;
/** The broker gives out no more at once. */
const RECEIVE_MAX = 32;

/** The proxy repeats the message group among the properties; it is no property of ours. */
const MESSAGE_GROUP_PROPERTY = '__SHARDINGKEY';

/**
 * A {@link Subscriber} on RocketMQ. Resolves also while the broker is down or the topic is missing: calls then reject with
 * BrokerError, and try to start the client again.
 *
 * Where a new group starts is the broker's to say, and cannot be chosen over gRPC: at the first message while the topic is young and
 * in memory, else at its last one. What was published before is the ledger sweep's.
 *
 * The broker locks a queue until everything that it handed out of it is acknowledged: acknowledge soon, and in order.
 */
export async function createSubscriber(options: SubscriberOptions): Promise<RocketmqSubscriber> {
  assertEndpoints(options.endpoints);
  limitsOf(options);
  const waitMs = options.waitMs ?? WAIT_MS;
  assertDuration('waitMs', waitMs, 1);
  const { group, topic } = options;
  const consumer = new TopicConsumer(options, { group, topic, waitMs });
  try {
    await consumer.start();
  } catch (error) {
    options.log?.('warn', `group ${group} could not start on topic ${topic}: ${describeError(error).text}`);
  }
  return new TopicSubscriber(consumer, { group, topic, mayBeMissing: false });
}

/**
 * A {@link Subscriber} on what the broker has given up for a group: `%DLQ%` and its name, a topic that the broker makes with the first such
 * message; until then `receive` resolves empty. It is read by the group itself, whose own count of deliveries goes on there: a message
 * that is not acknowledged in time is given up once more, which leaves one more copy in the topic.
 */
export function createDeadLetterSubscriber(options: Omit<SubscriberOptions, 'topic'>): RocketmqSubscriber {
  assertEndpoints(options.endpoints);
  limitsOf(options);
  const { group, log, waitMs = WAIT_MS } = options;
  assertDuration('waitMs', waitMs, 1);
  const topic = `%DLQ%${group}`;
  // That the topic is missing is no trouble, whatever the client logs.
  const quiet = log === undefined ? {} : { log: debugOnly(log) };
  const consumer = new TopicConsumer({ ...options, ...quiet }, { group, topic, waitMs });
  return new TopicSubscriber(consumer, { group, topic, mayBeMissing: true });
}

class TopicSubscriber implements RocketmqSubscriber {
  readonly group: string;
  readonly #consumer: TopicConsumer;
  readonly #mayBeMissing: boolean;
  readonly #who: string;

  constructor(
    consumer: TopicConsumer,
    { group, topic, mayBeMissing }: { group: string; topic: string; mayBeMissing: boolean },
  ) {
    this.group = group;
    this.#consumer = consumer;
    this.#mayBeMissing = mayBeMissing;
    this.#who = `group ${group} on topic ${topic}`;
  }

  async receive({ max, invisibleMs }: { max: number; invisibleMs: number }): Promise<readonly Delivery[]> {
    if (this.#consumer.closed) return [];
    try {
      const received = await this.#consumer.receive(Math.min(max, RECEIVE_MAX), invisibleMs);
      return received.map(deliveryOf);
    } catch (error) {
      // The receive that a close has ended.
      if (this.#isClosed()) return [];
      if (this.#mayBeMissing && isTopicMissing(error)) return [];
      throw this.#brokerError('could not receive', error);
    }
  }

  async acknowledge(deliveries: readonly Delivery[]): Promise<void> {
    await Promise.all(byProxy(deliveries.map(receivedOf)).map((received) => this.#acknowledge(received)));
  }

  async extend(deliveries: readonly Delivery[], invisibleMs: number): Promise<readonly Delivery[]> {
    const outcomes = await Promise.allSettled(
      deliveries.map((delivery) => this.#consumer.extend(receivedOf(delivery), invisibleMs)),
    );
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue;
      // What came too late stays as it is: the broker will hand it out again, or already has.
      if (isStale({ code: describeError(outcome.reason).code ?? 0 })) continue;
      throw this.#brokerError(`could not extend ${deliveries.length} messages`, outcome.reason);
    }
    // The handles were replaced inside the receipts.
    return deliveries;
  }

  async close(): Promise<void> {
    await this.#consumer.close();
  }

  async #acknowledge(received: readonly Received[]): Promise<void> {
    const outcome = await this.#consumer.acknowledge(received).then(
      (response) => judgeAcknowledgement(response, received.length),
      (error: unknown) => {
        throw this.#brokerError(`could not acknowledge ${received.length} messages`, error);
      },
    );
    if (outcome.kind === 'failed') {
      throw new BrokerError(`RocketMQ: ${this.#who} could not acknowledge: ${outcome.reason}`);
    }
  }

  /** Asked again after a wait: the consumer may have been closed meanwhile. */
  #isClosed(): boolean {
    return this.#consumer.closed;
  }

  #brokerError(what: string, cause: unknown): BrokerError {
    return new BrokerError(`RocketMQ: ${this.#who} ${what}: ${describeError(cause).text}`, { cause });
  }
}

function debugOnly(log: ClientLog): ClientLog {
  return (_level, message) => {
    log('debug', message);
  };
}

/** TOPIC_NOT_FOUND, as the proxy says it. */
const TOPIC_MISSING = 40402;

function isTopicMissing(error: unknown): boolean {
  return describeError(error).code === TOPIC_MISSING;
}

function deliveryOf(received: Received): Delivery {
  const { view } = received;
  return {
    messageId: view.messageId,
    topic: view.topic,
    body: view.body,
    properties: Object.fromEntries([...view.properties].filter(([name]) => name !== MESSAGE_GROUP_PROPERTY)),
    deliveryAttempt: view.deliveryAttempt ?? 1,
    receipt: received,
  };
}

function receivedOf({ messageId, receipt }: Delivery): Received {
  if (receipt instanceof Received) return receipt;
  throw new NightporterError('NP_INTERNAL', `The delivery of message ${messageId} is of another subscriber.`);
}

/** In practice one group: the messages of one proxy can be acknowledged in one request, whatever their queues. */
function byProxy(received: readonly Received[]): (readonly Received[])[] {
  const groups = new Map<string, Received[]>();
  for (const message of received) {
    const proxy = message.view.endpoints.facade;
    const group = groups.get(proxy);
    if (group === undefined) groups.set(proxy, [message]);
    else group.push(message);
  }
  return [...groups.values()];
}
