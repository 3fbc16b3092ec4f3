import { setTimeout as delay } from 'node:timers/promises';
import { createConsumer, type ConsumerObserver, type GroupStore, type Subscriber } from '@nightporter/consumer';
import { connectMongo, createGroupStores, ensureConsumerCollections } from '@nightporter/mongo';
import { createSubscriber } from '@nightporter/rocketmq';
import { systemClock, systemRandom } from '@nightporter/runtime';
import type { ClientSession, MongoClient } from 'mongodb';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';
import { MEASURED_EVENT, sendMessages } from './messages.js';

const TOPIC_QUEUES = 8;
const PHASE_LIMIT_MS = 300_000;

type Mode = 'off' | 'on';

export interface GroupCommitResult extends Readonly<Record<string, unknown>> {
  readonly off: Summary;
  readonly on: Summary;
  /** Of the speed with it to the speed without. */
  readonly ratio: number;
  readonly phases: readonly Phase[];
}

/** What one consumer did with one backlog. */
interface Phase {
  readonly mode: Mode;
  readonly messages: number;
  readonly ms: number;
  readonly transactions: number;
  readonly conflicts: number;
  readonly acknowledgeRequests: number;
  readonly redelivered: number;
}

export const groupCommit: Benchmark = {
  name: 'group-commit',
  description:
    'Events per second of one worker process on a backlog: one transaction for each event against group commit. Each event costs one insert of its handler.',
  options: [
    { name: 'messages', description: 'events of each backlog', default: 3_000 },
    { name: 'aggregates', description: 'aggregates that they belong to', default: 600 },
    { name: 'rounds', description: 'backlogs with and without group commit, in turn', default: 2 },
    { name: 'loops', description: 'receive loops', default: 4 },
    { name: 'batch', description: 'most events in one transaction, with group commit', default: 32 },
  ],
  run: measureGroupCommit,
};

/** How fast one worker is without and with group commit, in turn. */
export async function measureGroupCommit(context: BenchmarkContext): Promise<GroupCommitResult> {
  const client = await connectMongo({ uri: context.stack.mongodb.uri });
  context.atEnd(() => client.close());
  // Both servers and this process are slow at first, which must not be charged to whichever mode comes first.
  await phase(context, client, {
    mode: 'on',
    name: 'warm-up',
    messages: Math.min(1_000, numberOf(context, 'messages')),
  });
  const phases: Phase[] = [];
  for (let round = 1; round <= numberOf(context, 'rounds'); round += 1) {
    for (const mode of ['off', 'on'] as const) {
      const messages = numberOf(context, 'messages');
      phases.push(await phase(context, client, { mode, name: `${mode}-${round}`, messages }));
    }
  }
  const off = summary(phases, 'off');
  const on = summary(phases, 'on');
  return { off, on, ratio: rounded(on.perSecond / off.perSecond), phases };
}

/** Lets a worker of its own settle a backlog of its own, in a database of its own. */
async function phase(
  context: BenchmarkContext,
  client: MongoClient,
  { mode, name, messages }: { mode: Mode; name: string; messages: number },
): Promise<Phase> {
  const { rocketmq } = context.stack;
  const place = { topic: `bench-${name}`, group: `bench-${name}`, database: `bench-${name}` };
  const { topic, group, database } = place;
  await rocketmq.createTopic({ name: topic, queues: TOPIC_QUEUES });
  await rocketmq.createGroup({ name: group, topics: [topic] });
  await ensureConsumerCollections(client, database);
  const effects = await client.db(database).createCollection('effects');
  const aggregates = numberOf(context, 'aggregates');
  await sendMessages({ endpoints: rocketmq.endpoints, topic, count: messages, aggregates });
  const subscriber = await createSubscriber({ endpoints: rocketmq.endpoints, group, topic });
  const meter = new Meter();
  const stores = createGroupStores({ client, database, group });
  const consumer = createConsumer<ClientSession>(
    {
      subscribers: [meter.subscriber(subscriber)],
      store: meter.store(stores.store),
      parked: stores.parked,
      started: stores.started,
      emitter: () => () => Promise.reject(new Error('The benchmark emits nothing.')),
      clock: systemClock,
      random: systemRandom,
      observe: meter.observe,
    },
    {
      group,
      receiveLoops: numberOf(context, 'loops'),
      commitMax: mode === 'on' ? numberOf(context, 'batch') : 1,
      handlers: {
        [MEASURED_EVENT]: async ({ event: { aggregateId, aggregateVersion: version, data }, session }) => {
          await effects.insertOne({ aggregateId, version, data }, { session });
        },
      },
    },
  );
  const running = consumer.run();
  const deadlineMs = performance.now() + PHASE_LIMIT_MS;
  while (meter.settled < messages && performance.now() < deadlineMs) await delay(20);
  await consumer.stop();
  await running;
  await subscriber.close();
  const { applied, conflicts, redelivered } = consumer.snapshot();
  if (applied !== messages) throw new Error(`${name}: ${applied} of ${messages} events were applied.`);
  const { ms, transactions, acknowledgeRequests } = meter;
  context.progress(`${name}: ${Math.round((messages * 1_000) / ms)} events per second, ${transactions} transactions`);
  return { mode, messages, ms, transactions, conflicts, acknowledgeRequests, redelivered };
}

/** Counts between the engine and its ports. The clock runs from the first message received to the last one settled. */
class Meter {
  transactions = 0;
  acknowledgeRequests = 0;
  settled = 0;
  #firstMs = 0;
  #lastMs = 0;

  get ms(): number {
    return Math.round(this.#lastMs - this.#firstMs);
  }

  readonly observe: ConsumerObserver = (event) => {
    if (event.kind === 'received' && this.#firstMs === 0) this.#firstMs = performance.now();
    if (event.kind !== 'settled') return;
    this.settled += 1;
    this.#lastMs = performance.now();
  };

  subscriber(real: Subscriber): Subscriber {
    return {
      receive: (request) => real.receive(request),
      extend: (deliveries, invisibleMs) => real.extend(deliveries, invisibleMs),
      acknowledge: (deliveries) => {
        this.acknowledgeRequests += 1;
        return real.acknowledge(deliveries);
      },
    };
  }

  store(real: GroupStore<ClientSession>): GroupStore<ClientSession> {
    return {
      transact: (work) => {
        this.transactions += 1;
        return real.transact(work);
      },
    };
  }
}

interface Summary {
  readonly perSecond: number;
  readonly perTransaction: number;
  readonly perAcknowledgeRequest: number;
  readonly redelivered: number;
}

function summary(phases: readonly Phase[], mode: Mode): Summary {
  const own = phases.filter((one) => one.mode === mode);
  const sum = (of: (one: Phase) => number): number => own.reduce((total, one) => total + of(one), 0);
  return {
    perSecond: Math.round((sum((one) => one.messages) * 1_000) / sum((one) => one.ms)),
    perTransaction: rounded(sum((one) => one.messages) / sum((one) => one.transactions)),
    perAcknowledgeRequest: rounded(sum((one) => one.messages) / sum((one) => one.acknowledgeRequests)),
    redelivered: sum((one) => one.redelivered),
  };
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
