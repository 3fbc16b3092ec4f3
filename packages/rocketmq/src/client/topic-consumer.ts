import type { MessageView } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import service from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import type { AckResponse } from '../ack-outcome.js';
import { limitsOf, type ConnectionOptions, type Limits } from '../options.js';
import { HardenedConsumer, type ConsumerSettings } from './hardened-clients.js';
import { startWithin, stopWithin } from './lifecycle.js';

/** A message as received. Its handle is replaced in place when its invisibility is extended, so that no copy of it goes stale. */
export class Received {
  readonly view: MessageView;

  constructor(view: MessageView) {
    this.view = view;
  }
}

/**
 * Reads one topic for one group through one consumer of the client, which is started by the first call that needs it (all calls
 * that come meanwhile wait for the same start) and anew after a start that failed. Calls reject with what the client rejected with.
 */
export class TopicConsumer {
  readonly #options: ConnectionOptions;
  readonly #settings: ConsumerSettings;
  readonly #limits: Limits;
  #consumer: HardenedConsumer | null = null;
  #starting: { readonly consumer: HardenedConsumer; readonly done: Promise<HardenedConsumer> } | null = null;
  #closed = false;

  constructor(options: ConnectionOptions, settings: ConsumerSettings) {
    this.#options = options;
    this.#settings = settings;
    this.#limits = limitsOf(options);
  }

  get closed(): boolean {
    return this.#closed;
  }

  async start(): Promise<HardenedConsumer> {
    if (this.#closed) throw new Error('The subscriber has been closed.');
    if (this.#consumer !== null) return this.#consumer;
    if (this.#starting === null) {
      const consumer = new HardenedConsumer(this.#options, this.#settings);
      this.#starting = { consumer, done: this.#startOne(consumer) };
    }
    return await this.#starting.done;
  }

  async receive(max: number, invisibleMs: number): Promise<readonly Received[]> {
    const consumer = await this.start();
    const views = await consumer.receive(max, invisibleMs);
    return views.map((view) => new Received(view));
  }

  /** One request for all messages; they must have come through one proxy. */
  async acknowledge(received: readonly Received[]): Promise<AckResponse> {
    const consumer = await this.start();
    const request = new service.AckMessageRequest()
      .setGroup(new definition.Resource().setName(this.#settings.group))
      .setTopic(new definition.Resource().setName(this.#settings.topic));
    for (const { view } of received) {
      request.addEntries().setMessageId(view.messageId).setReceiptHandle(view.receiptHandle);
    }
    const { requestTimeoutMs } = this.#limits;
    const response = await consumer.ackMessageViaRpc(received[0]?.view.endpoints, request, requestTimeoutMs);
    const { status, entriesList } = response.toObject();
    return {
      status: status ?? null,
      entries: entriesList.map((entry) => entry.status ?? { code: 0, message: 'without a status' }),
    };
  }

  /** Keeps a message invisible from now on and replaces its handle. */
  async extend({ view }: Received, invisibleMs: number): Promise<void> {
    const consumer = await this.start();
    await consumer.changeInvisibleDuration(view, invisibleMs);
  }

  /** Cancels what is pending and stops, within the limit. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    const clients = [this.#consumer, this.#starting?.consumer ?? null].filter((client) => client !== null);
    this.#consumer = null;
    await Promise.all(clients.map((client) => stopWithin(client, this.#limits.closeTimeoutMs)));
  }

  async #startOne(consumer: HardenedConsumer): Promise<HardenedConsumer> {
    try {
      await startWithin(consumer, this.#limits.startTimeoutMs);
    } finally {
      this.#starting = null;
    }
    this.#consumer = consumer;
    return consumer;
  }
}
