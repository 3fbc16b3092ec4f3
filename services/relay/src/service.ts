import {
  closeMongo,
  connectMongo,
  createAges,
  createRelayStores,
  engineOf,
  ensureRelayCollections,
} from '@nightporter/mongo';
import { isNightporterError, namespace } from '@nightporter/protocol';
import { createRelay, shardsOf, type Relay } from '@nightporter/relay';
import { createPublisher, preflightTopic } from '@nightporter/rocketmq';
import {
  brokerConnection,
  createHealthServer,
  systemClock,
  systemRandom,
  untilAvailable,
  type BrokerConnection,
  type ConfigOf,
  type Logger,
  type RunningService,
  type ServiceContext,
  type ServiceDefinition,
} from '@nightporter/runtime';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { relayProblems } from './health.js';
import { createRelayMetrics } from './metrics.js';
import { createRelayObserver } from './observer.js';
import { destinationOf, startRetention } from './retention.js';
import { sendLimitMs } from './send-limit.js';
import { relaySettings } from './settings.js';
import { tracedPublisher } from './traced-publisher.js';

type RelayConfig = ConfigOf<typeof relaySettings>;

/** Of the time for stopping: what is in flight takes half, and up to two fifths of that again; the connections go together. */
const DRAIN_SHARE = 0.5;
const CLOSE_SHARE = 0.2;

async function start({ config, logger, signal, tracing = null }: ServiceContext<RelayConfig>): Promise<RunningService> {
  const sendMs = sendLimitMs(config);
  const destination = await destinationOf(config);
  const connection = brokerConnection(config, logger);
  const client = await connectMongo({ uri: config.mongodbUri, appName: 'relay' });
  const observer = createRelayObserver(logger, systemClock);
  let relay: Relay | null = null;
  let preflight = 'topics are being checked';
  const checks = {
    database: async () => {
      await client.db(config.mongodbDatabase).command({ ping: 1 });
      return null;
    },
    relay: () => {
      const problems = relay === null ? [preflight] : relayProblems(relay.snapshot(), observer.sends());
      return problems.length === 0 ? null : problems.join('; ');
    },
  };
  const { metrics, observe } = createRelayMetrics({
    topics: config.topics,
    checks,
    snapshot: () => relay?.snapshot() ?? null,
    ages: createAges(client),
    tracing,
  });
  const health = await createHealthServer({
    host: config.host,
    port: config.port,
    checks,
    metrics,
    status: () => relay?.snapshot() ?? { preflight },
  });
  logger.info({ port: health.port, ...(await engineOf(client)) }, 'answering health checks');
  await ensureRelayCollections(client, config.mongodbDatabase);
  await checkTopics(config.topics, { connection, logger, signal, waiting: (reason) => (preflight = reason) });
  const publisher = await createPublisher({
    ...connection,
    topics: config.topics,
    requestTimeoutMs: config.sendTimeoutMs,
    closeTimeoutMs: Math.max(100, Math.floor(config.shutdownMs * CLOSE_SHARE)),
  });
  // Unique per process start: a lease of a process before this one is somebody else's.
  const owner = `${hostname()}:${process.pid}:${randomUUID()}`;
  const engine = createRelay(
    {
      ...createRelayStores({
        client,
        database: config.mongodbDatabase,
        namespaces: config.namespaces.map(namespace),
        owner,
        claimMs: config.claimMs,
        onWarning: (error) => {
          logger.warn({ err: error }, 'the outbox needs attention');
        },
      }),
      publisher:
        tracing === null ? publisher : tracedPublisher(publisher, { tracing, endpoints: config.rocketmqEndpoints }),
      clock: systemClock,
      random: systemRandom,
      observe: (event) => {
        observer.observe(event);
        observe(event);
      },
    },
    {
      owner,
      shards: shardsOf(config.shards),
      sharesShards: true,
      capture: config.capture,
      pollEveryMs: config.pollEveryMs,
      leaseMs: config.leaseMs,
      sendMs,
      sweepEveryMs: config.sweepEveryMs,
      windowMax: config.windowMax,
      sendsPerSecondMax: config.sendsPerSecondMax === 0 ? null : config.sendsPerSecondMax,
      drainMs: Math.max(50, Math.floor(config.shutdownMs * DRAIN_SHARE)),
    },
  );
  relay = engine;
  const retention = startRetention(
    { client, clock: systemClock, config, logger, snapshot: () => engine.snapshot() },
    destination,
  );
  return {
    ended: engine.run(),
    stop: async () => {
      await Promise.all([engine.stop(), retention?.stop()]);
      observer.close();
      await Promise.all([publisher.close(), closeMongo(client, config.shutdownMs * CLOSE_SHARE)]);
      await health.close();
    },
  };
}

interface TopicCheck {
  readonly connection: BrokerConnection;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly waiting: (reason: string) => void;
}

/** A topic that is wrong ends the start with the command that mends it; a broker that does not answer is waited for. */
async function checkTopics(topics: readonly string[], check: TopicCheck): Promise<void> {
  for (const topic of topics) {
    const facts = await untilAvailable(() => preflightTopic({ ...check.connection, topic }), {
      clock: systemClock,
      signal: check.signal,
      everyMs: 1_000,
      isOutage: (error) => isNightporterError(error, 'NP_BROKER_UNAVAILABLE'),
      waiting: (error) => {
        check.waiting(`the broker did not answer about topic ${topic}`);
        check.logger.warn({ topic, err: error }, 'broker unavailable; trying again');
      },
    });
    check.logger.info(facts, 'topic checked');
  }
}

export const relayService: ServiceDefinition<typeof relaySettings> = {
  name: 'relay',
  description:
    'Carries committed events from the outboxes to RocketMQ, in order. One works and others stand by, or they share the work.',
  config: relaySettings,
  start,
};
