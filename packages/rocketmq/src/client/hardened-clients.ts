import {
  ForbiddenException,
  Producer,
  SimpleConsumer,
  type BaseClient,
  type BaseClientOptions,
  type RpcClientManager,
  type TopicRouteData,
} from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import { limitsOf, type ConnectionOptions } from '../options.js';
import { clientLogger } from './client-logger.js';
import { Transport } from './transport.js';

const { Code, Permission } = definition;
const FORBIDDEN = Code.FORBIDDEN;
const WRITABLE = new Set<number>([Permission.WRITE, Permission.READ_WRITE]);

/**
 * The client's producer for one topic: with two or more, its start can wait for ever. It sends once; whether and when to send again
 * is the engine's decision, and the client's own retries would be immediate, for hopeless messages too.
 */
export class HardenedProducer extends Producer {
  readonly transport: Transport;
  #firstRoute: string | null = null;
  #routeChanged = false;
  #writable = false;

  constructor(options: ConnectionOptions, topic: string) {
    super({ ...clientOptions(options), topics: [topic], maxAttempts: 1 });
    this.transport = takeOver(this, this.rpcClientManager, options);
  }

  /** The client keeps the first route that it has sent by: once the route has changed, the producer must be replaced. */
  get routeChanged(): boolean {
    return this.#routeChanged;
  }

  /** @throws with the broker's code for "forbidden" when no queue takes messages; the client itself would only fail to draw one. */
  assertWritable(topic: string): void {
    if (!this.#writable) throw new ForbiddenException(FORBIDDEN, `topic ${topic} has no queue that can be written`);
  }

  protected override onTopicRouteDataUpdate(_topic: string, route: TopicRouteData): void {
    this.#writable = route.messageQueues.some(({ queueId, permission }) => queueId === 0 && WRITABLE.has(permission));
    const described = describeRoute(route);
    this.#firstRoute ??= described;
    this.#routeChanged ||= this.#firstRoute !== described;
  }

  /** The pauses between the three look-ups of a route at the start would outlive a failed start. */
  protected override sleep(): Promise<void> {
    return Promise.resolve();
  }
}

export interface ConsumerSettings {
  readonly group: string;
  readonly topic: string;
  readonly waitMs: number;
}

/** The client's simple consumer of one group on one topic, all tags, without its own retries. */
export class HardenedConsumer extends SimpleConsumer {
  readonly transport: Transport;

  constructor(options: ConnectionOptions, { group, topic, waitMs }: ConsumerSettings) {
    super({
      ...clientOptions(options),
      consumerGroup: group,
      subscriptions: new Map([[topic, '*']]),
      awaitDuration: waitMs,
      maxRetryAttempts: 1,
    });
    this.transport = takeOver(this, this.rpcClientManager, options);
  }

  protected override sleep(): Promise<void> {
    return Promise.resolve();
  }
}

function clientOptions(options: ConnectionOptions): BaseClientOptions {
  return {
    endpoints: options.endpoints,
    namespace: '',
    requestTimeout: limitsOf(options).requestTimeoutMs,
    logger: clientLogger(options.log),
    ...(options.credentials && { sessionCredentials: options.credentials }),
  };
}

/** Gives a client our transport instead of its own connection manager, whose timer is stopped: it would hold the process. */
function takeOver(client: BaseClient, manager: RpcClientManager, options: ConnectionOptions): Transport {
  manager.close();
  const transport = new Transport({
    tls: options.tls ?? false,
    pinned: options.alwaysUseEndpoints === true ? client.getEndpoints() : null,
    metadata: () => client.getRequestMetadata(),
    log: (level, message) => options.log?.(level, message),
  });
  Object.defineProperty(client, 'rpcClientManager', { value: transport });
  return transport;
}

/** What of a route the client sends by: the first queue of each broker. */
function describeRoute(route: TopicRouteData): string {
  const queues = route.messageQueues.filter((queue) => queue.queueId === 0);
  return JSON.stringify(
    queues
      .map(({ broker, permission, acceptMessageTypesList }) => [
        broker.name,
        broker.endpoints.facade,
        permission,
        [...acceptMessageTypesList].sort(),
      ])
      .sort(),
  );
}
