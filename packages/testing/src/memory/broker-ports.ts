import { BrokerError, type Delivery, type Subscriber } from '@nightporter/consumer';
import { PublishError, type Publisher, type PublishFailure, type PublishRequest } from '@nightporter/relay';
import type { Random } from '@nightporter/protocol';
import { MemoryTopic, type HandedOut, type Receipt, type StoredMessage } from './broker.js';
import { messageOf } from './message.js';
import type { NoAnswer, Network } from './network.js';

/** How long a receive waits for a message. */
const RECEIVE_WAIT_MS = 2_000;

/** Told of every message that the broker stores. */
export type LandingListener = (landing: { request: PublishRequest; message: StoredMessage }) => void;

/** Told of every acknowledgement, those with a stale receipt included. */
export type AcknowledgementListener = (acknowledgement: {
  group: string;
  topic: string;
  message: StoredMessage;
}) => void;

/** A broker with its FIFO topics. */
export class MemoryBroker {
  readonly topics = new Map<string, MemoryTopic>();
  onLanded: LandingListener = () => undefined;
  onAcknowledged: AcknowledgementListener = () => undefined;
  /** Decides which sends the broker refuses, and how. */
  refuse: (request: PublishRequest) => PublishFailure | null = () => null;
  /** Decides which messages it takes, and then loses. */
  loses: (request: PublishRequest) => boolean = () => false;
  down = false;
  readonly #options: { clock: () => number; random: Random; queues: number };
  #messages = 0;

  constructor(options: { clock: () => number; random: Random; queues: number }) {
    this.#options = options;
  }

  topic(name: string): MemoryTopic {
    const known = this.topics.get(name);
    if (known !== undefined) return known;
    const topic = new MemoryTopic(this.#options);
    topic.onAcknowledged = (group, message) => {
      this.onAcknowledged({ group, topic: name, message });
    };
    this.topics.set(name, topic);
    return topic;
  }

  publish(request: PublishRequest): { messageId: string } {
    if (this.down) throw publishFailed('transient', { answered: true });
    const refusal = this.refuse(request);
    if (refusal !== null) throw publishFailed(refusal, { answered: true });
    this.#messages += 1;
    const message = messageOf(request, `message-${this.#messages}`);
    if (!this.loses(request)) this.topic(request.row.topic).append(message);
    this.onLanded({ request, message });
    return { messageId: message.messageId };
  }

  /** Refuses everything while it is down. */
  checkUp(): void {
    if (this.down) throw new BrokerError('the broker is down');
  }

  /** Comes back without its locks, at the offsets that it last persisted. */
  restart(): void {
    this.down = false;
    for (const topic of this.topics.values()) topic.restart();
  }
}

export function memoryPublisher(broker: MemoryBroker, network: Network): Publisher {
  return {
    publish: (request) =>
      network.call('publisher.publish', () => broker.publish(request), {
        target: 'broker',
        noAnswer: (reason) => publishFailed('transient', { answered: reason === 'unreachable' }),
      }),
  };
}

/** One group's subscription to one topic. */
export function memorySubscriber(
  broker: MemoryBroker,
  network: Network,
  { group, topic }: { group: string; topic: string },
): Subscriber {
  const noAnswer = (reason: NoAnswer): Error => new BrokerError(`the broker is ${reason}`);
  const changes = broker.topic(topic).changes;
  const at = <Result>(operation: (queues: MemoryTopic) => Result) => {
    return () => {
      broker.checkUp();
      return operation(broker.topic(topic));
    };
  };
  return {
    async receive(request) {
      const longPoll = { forMs: RECEIVE_WAIT_MS, isEmpty: isEmptyList, changes };
      const operation = at((queues) => queues.receive({ group, ...request }));
      const handedOut = await network.call('subscriber.receive', operation, { target: 'broker', noAnswer, longPoll });
      return handedOut.map((message) => deliveryOf(message, topic));
    },
    acknowledge: (deliveries) => {
      const operation = at((queues) => {
        queues.acknowledge(group, receiptsOf(deliveries));
      });
      return network.call('subscriber.acknowledge', operation, { target: 'broker', noAnswer });
    },
    async extend(deliveries, invisibleMs) {
      const operation = at((queues) => queues.extend(group, receiptsOf(deliveries), invisibleMs));
      const renewed = await network.call('subscriber.extend', operation, { target: 'broker', noAnswer });
      return deliveries.map((delivery, index) => ({ ...delivery, receipt: renewed[index] }));
    },
  };
}

function deliveryOf({ messageId, body, properties, deliveryAttempt, receipt }: HandedOut, topic: string): Delivery {
  return { messageId, topic, body, properties, deliveryAttempt, receipt };
}

function receiptsOf(deliveries: readonly Delivery[]): readonly Receipt[] {
  return deliveries.map((delivery) => delivery.receipt as Receipt);
}

function isEmptyList(result: readonly unknown[]): boolean {
  return result.length === 0;
}

function publishFailed(failure: PublishFailure, { answered }: { answered: boolean }): PublishError {
  return new PublishError({ failure, answered, message: `the in-memory broker did not take the message: ${failure}` });
}
