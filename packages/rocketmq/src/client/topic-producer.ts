import { limitsOf, type ConnectionOptions, type Limits } from '../options.js';
import type { OutgoingMessage } from '../message.js';
import { HardenedProducer } from './hardened-clients.js';
import { startWithin, stopWithin } from './lifecycle.js';
import { TimeLimitError, settledWithin, within } from './time-limit.js';

/** A producer that sends. One that was retired is stopped once nothing of it is in flight. */
interface Running {
  readonly producer: HardenedProducer;
  inFlight: number;
  retired: boolean;
}

/** The topic's client could not be started; nothing was sent. */
export class StartFailedError extends Error {
  constructor(topic: string, cause: unknown) {
    super(`The producer of topic ${topic} could not be started.`, { cause });
    this.name = 'StartFailedError';
  }
}

/**
 * Sends to one topic through one producer of the client. Three modes: *idle* (none; the next send starts one, and all sends that
 * come meanwhile wait for the same start), *running*, and *replacing* (running, while a fresh producer starts because the route has
 * changed; from then on sends go through the fresh one). A send that fails because of the topic returns to idle, so that the topic is looked
 * up anew: the client itself would keep the refused route for ever.
 */
export class TopicProducer {
  readonly #options: ConnectionOptions;
  readonly #limits: Limits;
  readonly #topic: string;
  readonly #sends = new Set<Promise<unknown>>();
  readonly #stops = new Set<Promise<unknown>>();
  #running: Running | null = null;
  #starting: { readonly producer: HardenedProducer; readonly done: Promise<Running> } | null = null;
  #closed = false;

  constructor(options: ConnectionOptions, topic: string) {
    this.#options = options;
    this.#limits = limitsOf(options);
    this.#topic = topic;
  }

  /** @throws StartFailedError */
  async start(): Promise<void> {
    await this.#ready();
  }

  /** Resolves with the broker's message id. Rejects with StartFailedError, or with what the client rejected with. */
  send(message: OutgoingMessage): Promise<string> {
    const send = this.#send(message);
    this.#sends.add(send);
    const forget = (): void => void this.#sends.delete(send);
    send.then(forget, forget);
    return send;
  }

  /** Forgets the producer, so that the next send starts a fresh one. */
  retire(): void {
    if (this.#running !== null) this.#retire(this.#running);
  }

  /** Waits for sends in flight and stops everything, within the limit. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    const deadline = performance.now() + this.#limits.closeTimeoutMs;
    const remainingMs = (): number => Math.max(0, deadline - performance.now());
    const { producer: starting } = this.#starting ?? {};
    if (starting !== undefined) this.#stop(starting, remainingMs());
    await settledWithin([...this.#sends], remainingMs());
    if (this.#running !== null) this.#stop(this.#running.producer, remainingMs());
    this.#running = null;
    await Promise.all(this.#stops);
  }

  async #send(message: OutgoingMessage): Promise<string> {
    const running = await this.#readyToSend();
    running.inFlight += 1;
    try {
      const receipt = await running.producer.send({
        topic: message.topic,
        body: Buffer.from(message.body.buffer, message.body.byteOffset, message.body.byteLength),
        tag: message.tag,
        keys: [...message.keys],
        messageGroup: message.messageGroup,
        properties: new Map(message.properties),
      });
      return receipt.messageId;
    } finally {
      running.inFlight -= 1;
      this.#stopIfDone(running);
    }
  }

  /** A start that takes longer than a request may goes on without this send, so that no send is on its way for longer than is told. */
  async #readyToSend(): Promise<Running> {
    try {
      return await within(this.#ready(), this.#limits.requestTimeoutMs);
    } catch (error) {
      throw error instanceof TimeLimitError ? new StartFailedError(this.#topic, error) : error;
    }
  }

  async #ready(): Promise<Running> {
    if (this.#running === null) return await this.#start();
    if (this.#running.producer.routeChanged && this.#starting === null && !this.#closed) {
      this.#start().catch((error: unknown) => {
        this.#options.log?.('warn', `the producer of topic ${this.#topic} could not be replaced: ${String(error)}`);
      });
    }
    return this.#running;
  }

  #start(): Promise<Running> {
    if (this.#closed)
      return Promise.reject(new StartFailedError(this.#topic, new Error('The publisher has been closed.')));
    if (this.#starting === null) {
      const producer = new HardenedProducer(this.#options, this.#topic);
      this.#starting = { producer, done: this.#startOne(producer) };
    }
    return this.#starting.done;
  }

  async #startOne(producer: HardenedProducer): Promise<Running> {
    try {
      await startWithin(producer, this.#limits.startTimeoutMs, () => {
        producer.assertWritable(this.#topic);
      });
    } catch (error) {
      throw new StartFailedError(this.#topic, error);
    } finally {
      this.#starting = null;
    }
    const before = this.#running;
    const running = { producer, inFlight: 0, retired: false };
    this.#running = running;
    if (before !== null) this.#retire(before);
    return running;
  }

  #retire(running: Running): void {
    if (this.#running === running) this.#running = null;
    running.retired = true;
    this.#stopIfDone(running);
  }

  #stopIfDone(running: Running): void {
    if (running.retired && running.inFlight === 0) this.#stop(running.producer, this.#limits.closeTimeoutMs);
  }

  #stop(producer: HardenedProducer, limitMs: number): void {
    const stop = stopWithin(producer, limitMs);
    this.#stops.add(stop);
    void stop.then(() => this.#stops.delete(stop));
  }
}
