import {
  businessKey,
  catalogueOn,
  inbox,
  naturallyIdempotent,
  optimisticVersion,
  stateMachine,
  type Events,
} from '@nightporter/example-strategies';
import { connectMongo, CONSUMER_COLLECTIONS } from '@nightporter/mongo';
import { createPublisher } from '@nightporter/rocketmq';
import { createLogger, loadConfig } from '@nightporter/runtime';
import { defineConsumer, type HandlersOf } from '@nightporter/worker';
import type { Db, Document, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { publishRequest, untilGiven } from './rocketmq-samples.js';

const ACCOUNTS = ['ada', 'ben', 'eve'];

/** The story of each account, version by version. The bank tells of its first transaction twice. */
const STORY: readonly {
  readonly eventType: string;
  readonly payload: (account: string) => Record<string, string | number>;
}[] = [
  { eventType: 'MoneyReceived', payload: (account) => ({ transactionId: `${account}-1`, amountMinor: 100 }) },
  { eventType: 'CardOrdered', payload: () => ({}) },
  { eventType: 'ContactChanged', payload: (account) => ({ email: `${account}@old.example` }) },
  { eventType: 'MoneyReceived', payload: (account) => ({ transactionId: `${account}-2`, amountMinor: 250 }) },
  { eventType: 'CardSent', payload: () => ({}) },
  { eventType: 'ContactChanged', payload: (account) => ({ email: `${account}@new.example` }) },
  { eventType: 'MoneyReceived', payload: (account) => ({ transactionId: `${account}-1`, amountMinor: 100 }) },
];

/** Versions as they reach the broker: each twice, and hardly one in its turn. */
const ARRIVAL = [2, 1, 4, 3, 1, 7, 6, 5, 2, 4, 7, 3, 5, 6];

interface Strategy {
  readonly name: string;
  readonly handlers: (database: Db) => HandlersOf<Events>;
  readonly collection: string;
  /** What stands there for one account. */
  readonly left: (account: string) => readonly Document[];
  /** What stands there once a group with an empty inbox has run the same events over it again; default: the same. */
  readonly leftAgain?: (account: string) => readonly Document[];
}

const STRATEGIES: readonly Strategy[] = [
  {
    name: 'The inbox',
    handlers: inbox,
    collection: 'balances',
    left: (_id) => [{ _id, balanceMinor: 450 }],
    leftAgain: (_id) => [{ _id, balanceMinor: 900 }],
  },
  {
    name: 'A business key',
    handlers: businessKey,
    collection: 'bookings',
    left: (accountId) => [
      { _id: `${accountId}-1`, accountId, amountMinor: 100 },
      { _id: `${accountId}-2`, accountId, amountMinor: 250 },
    ],
  },
  {
    name: 'A state machine',
    handlers: stateMachine,
    collection: 'deliveries',
    left: (_id) => [{ _id, state: 'sent', envelopes: 1 }],
  },
  {
    name: 'An optimistic version',
    handlers: optimisticVersion,
    collection: 'summaries',
    left: (_id) => [{ _id, version: 7, receivedMinor: 450 }],
  },
  {
    name: 'A naturally idempotent handler',
    handlers: naturallyIdempotent,
    collection: 'contacts',
    left: (_id) => [{ _id, email: `${_id}@new.example`, everUsed: [`${_id}@old.example`, `${_id}@new.example`] }],
  },
];

describe('Doubled and reordered messages', () => {
  let client: MongoClient;
  let topic: string;
  const groups = STRATEGIES.map(() => [uniqueName('strategy'), uniqueName('again')] as const);
  const databases: string[] = [];

  beforeAll(async () => {
    const { mongodbUri, rocketmqEndpoints } = sharedStack();
    client = await connectMongo({ uri: mongodbUri });
    topic = await createTopic({ name: uniqueName('accounts') });
    for (const name of groups.flat()) await createGroup({ name, topics: [topic] });
    const publisher = await createPublisher({ endpoints: rocketmqEndpoints, topics: [topic] });
    for (const aggregateId of ACCOUNTS) {
      const requests = STORY.map(({ eventType, payload }, index) =>
        publishRequest({
          topic,
          aggregateType: 'account',
          aggregateId,
          eventType,
          version: index + 1,
          payload: payload(aggregateId),
        }),
      );
      for (const version of ARRIVAL) await publisher.publish(requests[version - 1]!);
    }
    await publisher.close();
  });
  afterAll(async () => {
    for (const database of databases) await client.db(database).dropDatabase();
    await client.close();
  });

  /** Runs a worker of the group until it has settled every event of every account. */
  async function run(strategy: Strategy, { group, database }: { group: string; database: string }): Promise<void> {
    const worker = defineConsumer({
      name: 'strategies',
      description: 'An example.',
      port: 0,
      database,
      group,
      source: 'strategies',
      catalogue: catalogueOn(topic),
      subscriptions: [{ producer: database, topic, topicSetting: 'TOPIC' }],
      prepare: async ({ database: own }) => {
        await own.createCollection(strategy.collection).catch(() => undefined);
      },
      handlers: ({ database: own }) => strategy.handlers(own),
    });
    const { mongodbUri, rocketmqEndpoints } = sharedStack();
    const config = loadConfig(worker.config, { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints });
    const logger = createLogger({ name: 'strategies', level: 'silent' });
    const running = await worker.start({ config, logger, signal: new AbortController().signal });
    const settled = client.db(database).collection(CONSUMER_COLLECTIONS.inbox);
    try {
      const expected = ACCOUNTS.length * STORY.length;
      const isSettled = async () => ((await settled.countDocuments({ group })) === expected ? true : null);
      await untilGiven(isSettled, { limitMs: 60_000, what: `${expected} events are settled` });
    } finally {
      await running.stop();
    }
  }

  it.each(STRATEGIES.map((strategy, index) => [strategy.name, strategy, groups[index]!] as const))(
    '%s: leave one effect each, and what a second run over the same documents may leave',
    async (_name, strategy, [group, again]) => {
      const { left, leftAgain = left } = strategy;
      const database = uniqueName('strategy');
      databases.push(database);
      const documents = client.db(database).collection(strategy.collection);
      const all = () => documents.find({}).sort({ _id: 1 }).toArray();
      await run(strategy, { group, database });
      expect(await all()).toEqual(ACCOUNTS.flatMap(left));
      await run(strategy, { group: again, database });
      expect(await all()).toEqual(ACCOUNTS.flatMap(leftAgain));
    },
  );
});
