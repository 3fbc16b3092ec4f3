import type { DeadLetterSender } from '@nightporter/consumer';
import { brokerGroup, groupId, isNightporterError } from '@nightporter/protocol';
import {
  createDeadLetterSender,
  createDeadLetterSubscriber,
  createSubscriber,
  preflightGroup,
  preflightTopic,
  type RocketmqSubscriber,
} from '@nightporter/rocketmq';
import {
  systemClock,
  untilAvailable,
  type BrokerConnection,
  type ConfigOf,
  type ServiceContext,
} from '@nightporter/runtime';
import type { ResolvedSubscription, WorkerSettings } from './settings.js';

/** Of the time for stopping, the share of the connections to the broker. */
const CLOSE_SHARE = 0.3;

/** What a start has opened so far, closed in the reverse order. */
export type Opened = (() => Promise<void>)[];

/** One client per topic: the client's start-up can hang with several. */
export async function subscribe(
  subscriptions: readonly ResolvedSubscription[],
  { config, connection, opened }: BrokerUse,
): Promise<{ subscribers: readonly RocketmqSubscriber[]; brokerDeadLetters: RocketmqSubscriber }> {
  const group = brokerGroup(groupId(config.group));
  const options = { ...connection, group, closeTimeoutMs: closeTimeoutMs(config) };
  const brokerDeadLetters = createDeadLetterSubscriber(options);
  const subscribers: RocketmqSubscriber[] = [];
  // Together, so that one more topic does not take more of the time for stopping.
  opened.push(async () => {
    await Promise.all([...subscribers, brokerDeadLetters].map((subscriber) => subscriber.close()));
  });
  for (const { topic } of subscriptions) subscribers.push(await createSubscriber({ ...options, topic }));
  return { subscribers, brokerDeadLetters };
}

interface BrokerUse {
  readonly config: ConfigOf<WorkerSettings>;
  readonly connection: BrokerConnection;
  readonly opened: Opened;
}

export function copySender(
  subscriptions: readonly ResolvedSubscription[],
  { config, connection, opened }: BrokerUse,
): DeadLetterSender {
  const [first = '', ...others] = subscriptions.map(({ topic }) => topic);
  const sender = createDeadLetterSender({
    ...connection,
    topics: [first, ...others],
    closeTimeoutMs: closeTimeoutMs(config),
  });
  opened.push(() => sender.close());
  return sender;
}

function closeTimeoutMs({ shutdownMs }: ConfigOf<WorkerSettings>): number {
  return Math.max(100, Math.floor(shutdownMs * CLOSE_SHARE));
}

interface Preflight {
  readonly group: string;
  readonly context: Pick<ServiceContext<unknown>, 'logger' | 'signal'>;
  readonly connection: BrokerConnection;
  /** Where copies of dead letters go, if they do. */
  readonly copyTopic: string | null;
}

/** What is wrong ends the start with the command that mends it; a broker that does not answer is waited for. */
export async function preflight(
  topic: string,
  { group, connection, context: { logger, signal }, copyTopic }: Preflight,
): Promise<void> {
  const facts = await untilAvailable(
    async () => ({
      ...(copyTopic === null ? {} : { copies: await preflightTopic({ ...connection, topic: copyTopic }) }),
      ...(await preflightTopic({ ...connection, topic })),
      ...(await preflightGroup({ ...connection, group, topic })),
    }),
    {
      clock: systemClock,
      signal,
      everyMs: 1_000,
      isOutage: (error) => isNightporterError(error, 'NP_BROKER_UNAVAILABLE'),
      waiting: (error) => {
        logger.warn({ group, topic, err: error }, 'broker unavailable; trying again');
      },
    },
  );
  logger.info(facts, 'topic and group checked');
}
