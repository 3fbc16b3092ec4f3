import { setTimeout as delay } from 'node:timers/promises';
import { createConsumer } from '@nightporter/consumer';
import { connectMongo, createGroupStores, ensureConsumerCollections } from '@nightporter/mongo';
import { createSubscriber } from '@nightporter/rocketmq';
import { systemClock, systemRandom } from '@nightporter/runtime';
import type { ClientSession, MongoClient } from 'mongodb';
import { numberOf, type Benchmark, type BenchmarkContext } from './benchmark.js';
import { sendMessages } from './messages.js';
import { Meter } from './meter.js';
import { emitsNothing, insertingHandlers, inTurn, ofMode, rounded, type MeasuredPhase, type Mode } from './modes.js';

const TOPIC_QUEUES = 8;
const PHASE_LIMIT_MS = 300_000;

export interface GroupCommitResult extends Readonly<Record<string, unknown>> {
  readonly off: Summary;
  readonly on: Summary;
  /** Of the speed with it to the speed without. */
  readonly ratio: number;
  readonly phases: readonly Phase[];
}

/** What one consumer did with one backlog. */
interface Phase extends MeasuredPhase {
  readonly messages: number;
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
  const messages = numberOf(context, 'messages');
  const phases = await inTurn(context, (next) => phase(context, client, { ...next, messages }));
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
      emitter: emitsNothing,
      clock: systemClock,
      random: systemRandom,
      observe: meter.observe,
    },
    {
      group,
      receiveLoops: numberOf(context, 'loops'),
      commitMax: mode === 'on' ? numberOf(context, 'batch') : 1,
      handlers: insertingHandlers(effects),
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

interface Summary {
  readonly perSecond: number;
  readonly perTransaction: number;
  readonly perAcknowledgeRequest: number;
  readonly redelivered: number;
}

function summary(phases: readonly Phase[], mode: Mode): Summary {
  const { perSecond, perTransaction, sum } = ofMode(phases, mode, ({ messages }) => messages);
  const perAcknowledgeRequest = rounded(sum(({ messages }) => messages) / sum((one) => one.acknowledgeRequests));
  return { perSecond, perTransaction, perAcknowledgeRequest, redelivered: sum((one) => one.redelivered) };
}
