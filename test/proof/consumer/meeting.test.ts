import { createConsumer, type Consumer } from '@nightporter/consumer';
import {
  connectMongo,
  CONSUMER_COLLECTIONS,
  createGroupStores,
  ensureConsumerCollections,
  type InboxDocument,
  type ParkedDocument,
} from '@nightporter/mongo';
import { systemClock, systemRandom } from '@nightporter/runtime';
import type { ClientSession, Db, MongoClient } from 'mongodb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { until } from '../../e2e/programs.js';
import { publishRequest } from '../../integration/rocketmq-samples.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack, uniqueName } from '../../support/stack.js';
import { deliveryOf, HandedOver } from '../support/handed-over.js';
import { EVENT_TYPE, enterJournal, journalCollections, prepareJournal } from '../support/programs/journal.js';
import { sized } from '../support/size.js';

const MEETINGS = sized({ full: 1_000, small: 150 });
const NEVER_MS = 3_600_000;

let clients: readonly [MongoClient, MongoClient];
let database: Db;
const consumers: { readonly consumer: Consumer; readonly running: Promise<void> }[] = [];

beforeEach(async () => {
  const uri = sharedStack().mongodbUri;
  clients = [await connectMongo({ uri }), await connectMongo({ uri })];
  database = clients[0].db(uniqueName('meeting'));
  await ensureConsumerCollections(clients[0], database.databaseName);
  await prepareJournal(database);
});
afterEach(async () => {
  for (const { consumer, running } of consumers.splice(0)) {
    await consumer.stop();
    await running;
  }
  await Promise.all(clients.map((client) => client.close()));
});

/** A worker with connections of its own. Its scanner, which would find what was forgotten, never runs. */
function startWorker(client: MongoClient, group: string, subscriber: HandedOver): Consumer {
  const own = client.db(database.databaseName);
  const { store, parked, started } = createGroupStores({ client, database: own.databaseName, group });
  const consumer = createConsumer<ClientSession>(
    {
      subscribers: [subscriber],
      store,
      parked,
      started,
      emitter: () => () => Promise.reject(new Error('nothing is emitted')),
      clock: systemClock,
      random: systemRandom,
      observe: () => undefined,
    },
    {
      group,
      receiveLoops: 1,
      scanEveryMs: NEVER_MS,
      handlers: { [EVENT_TYPE]: (context) => enterJournal(own, context) },
    },
  );
  const running = consumer.run();
  running.catch(() => undefined);
  consumers.push({ consumer, running });
  return consumer;
}

it('two workers that park a version and apply the one before it at the same instant leave nothing parked', async (context) => {
  const group = uniqueName('meeting');
  const subscribers = [new HandedOver(), new HandedOver()] as const;
  const workers = clients.map((client, index) => startWorker(client, group, subscribers[index as 0 | 1]));
  for (let meeting = 0; meeting < MEETINGS; meeting += 1) {
    const request = { topic: 'meeting', aggregateId: `a${meeting}` };
    const deliveries = [1, 2].map((version) => deliveryOf(publishRequest({ ...request, version })));
    // Each of the two has the first version in turn.
    const [one, other] = meeting % 2 === 0 ? subscribers : ([subscribers[1], subscribers[0]] as const);
    await Promise.all([one.hand(deliveries[0]!), other.hand(deliveries[1]!)]);
  }
  const parked = database.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
  const inbox = database.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  let left = 0;
  const isDone = async (): Promise<boolean> => {
    left = await parked.countDocuments();
    return left === 0 && (await inbox.countDocuments()) === 2 * MEETINGS;
  };
  await until('nothing is parked', isDone, 30_000).catch((error: unknown) => {
    throw new Error(`${left} of ${MEETINGS} meetings left their second version parked`, { cause: error });
  });
  const entries = await journalCollections(database)
    .journal.find({}, { sort: { aggregateId: 1, sequence: 1 } })
    .toArray();
  expect(entries.map(({ version }) => version)).toEqual(
    Array.from({ length: 2 * MEETINGS }, (_, index) => 1 + (index % 2)),
  );
  const snapshots = workers.map((worker) => worker.snapshot());
  const sum = (of: (snapshot: (typeof snapshots)[number]) => number): number =>
    snapshots.reduce((total, snapshot) => total + of(snapshot), 0);
  const gaps = sum((snapshot) => snapshot.parked.gap);
  const conflicts = sum((snapshot) => snapshot.conflicts);
  showFigures(context, {
    meetings: MEETINGS,
    'parked before their turn': gaps,
    conflicts,
    'left parked': left,
    effects: entries.length,
    woken: sum((snapshot) => snapshot.woken),
  });
  // They did meet.
  expect(gaps + conflicts).toBeGreaterThan(0);
});
