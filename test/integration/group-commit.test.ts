import { createConsumer, type Delivery } from '@nightporter/consumer';
import { CONSUMER_COLLECTIONS, createGroupStores, ensureConsumerCollections } from '@nightporter/mongo';
import { groupId } from '@nightporter/protocol';
import { systemClock, systemRandom } from '@nightporter/runtime';
import { incomingEvent } from '@nightporter/testing/conformance';
import { MongoClient, type ClientSession } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { sharedStack } from '../support/stack.js';
import { deliveryOf, handingOut } from './handed-out.js';
import { untilGiven } from './rocketmq-samples.js';

const shared = sharedDatabase();

interface Settled {
  /** Statements of each transaction, with its commit. */
  readonly transactions: readonly (readonly string[])[];
  /** How many messages each acknowledge request had. */
  readonly acknowledged: readonly number[];
}

describe('group commit', () => {
  let client: MongoClient;
  let statements: { readonly transaction: string; readonly name: string }[] = [];
  beforeAll(() => {
    client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
    client.on('commandStarted', ({ command, commandName }) => {
      const { lsid, txnNumber, autocommit } = command as {
        lsid?: { id: unknown };
        txnNumber?: unknown;
        autocommit?: boolean;
      };
      if (autocommit !== false) return;
      statements.push({ transaction: `${JSON.stringify(lsid?.id)} ${String(txnNumber)}`, name: commandName });
    });
  });
  afterAll(() => client.close());

  /** Lets a consumer settle the first two versions of aggregates, which come as one batch, with a handler that writes nothing. */
  async function settle({ events, commitMax }: { events: number; commitMax: number }): Promise<Settled> {
    const database = shared.database('group');
    await ensureConsumerCollections(shared.client(), database);
    const stores = createGroupStores({ client, database, group: 'group' });
    const acknowledged: number[] = [];
    const subscriber = handingOut([deliveries(events)], (settled) => acknowledged.push(settled.length));
    const consumer = createConsumer<ClientSession>(
      {
        ...stores,
        subscribers: [subscriber],
        emitter: () => () => Promise.resolve(),
        clock: systemClock,
        random: systemRandom,
        observe: () => undefined,
      },
      {
        group: groupId('group'),
        handlers: { SampleHappened: () => Promise.resolve() },
        receiveLoops: 1,
        receiveMax: 64,
        commitMax,
      },
    );
    statements = [];
    const running = consumer.run();
    try {
      await untilGiven(() => Promise.resolve(acknowledged.length > 0 ? true : null), {
        limitMs: 20_000,
        what: 'the acknowledgement',
      });
    } finally {
      await consumer.stop();
      await running;
    }
    expect(await shared.client().db(database).collection(CONSUMER_COLLECTIONS.inbox).countDocuments()).toBe(events);
    const ids = [...new Set(statements.map(({ transaction }) => transaction))];
    const transactions = ids.map((id) =>
      statements.filter(({ transaction }) => transaction === id).map(({ name }) => name),
    );
    return { transactions, acknowledged };
  }

  it('costs as many statements for 64 events as for 2, and acknowledges them with one request', async () => {
    const few = await settle({ events: 2, commitMax: 64 });
    const many = await settle({ events: 64, commitMax: 64 });
    expect(many.transactions).toEqual([['find', 'find', 'find', 'find', 'update', 'insert', 'commitTransaction']]);
    expect(few.transactions).toEqual(many.transactions);
    expect(many.acknowledged).toEqual([64]);
  });

  it('that is turned off settles each event in a transaction of its own, and still acknowledges them together', async () => {
    const { transactions, acknowledged } = await settle({ events: 6, commitMax: 1 });
    expect(transactions).toHaveLength(6);
    expect(acknowledged).toEqual([6]);
  });
});

function deliveries(count: number): readonly Delivery[] {
  return Array.from({ length: count }, (_, index) =>
    deliveryOf(incomingEvent({ aggregateId: `a${index >> 1}`, version: (index % 2) + 1 })),
  );
}
