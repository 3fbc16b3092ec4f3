import {
  OUTBOX_COLLECTIONS,
  RELAY_COLLECTIONS,
  createGroupStores,
  createRelayStores,
  ensureConsumerCollections,
  ensureRelayCollections,
} from '@nightporter/mongo';
import { ALL_SLOTS, aggregateKey, epoch, namespace, type EventId } from '@nightporter/protocol';
import { incomingEvent, uniqueId } from '@nightporter/testing/conformance';
import { MongoClient, type Document } from 'mongodb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';
import { note, outboxFixture, type OutboxFixture } from './outbox-fixture.js';

let client: MongoClient;
let fixture: OutboxFixture;
/** What the driver sends, without the commands of its own. */
let sent: Document[];

const DURABLE = { w: 'majority', j: true };

/** A client that promises nothing by itself: what is durable here, is so because our code asks for it. */
beforeEach(async () => {
  client = new MongoClient(sharedStack().mongodbUri, {
    monitorCommands: true,
    writeConcern: { w: 1, journal: false },
    readConcern: { level: 'local' },
  });
  await client.connect();
  fixture = await outboxFixture(client);
  sent = [];
  client.on('commandStarted', ({ command }) => sent.push(command));
});

afterEach(async () => {
  await client.db(fixture.database).dropDatabase();
  await client.close();
});

it('A business transaction reads a snapshot and commits with majority and journal, whatever its client was made with', async () => {
  const { outbox, notes } = fixture;
  await outbox.transaction(async ({ session, emit }) => {
    await notes.insertOne({ _id: 'n', text: 'hello' }, { session });
    await emit(note('n'));
  });
  expectDurableTransaction();
});

it('The transaction of a consumer reads a snapshot and commits with majority and journal', async () => {
  const database = uniqueName('consumer');
  await ensureConsumerCollections(client, database);
  const { store } = createGroupStores({ client, database, group: 'group' });
  const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
  sent.length = 0;
  await store.transact(async (transaction) => {
    await transaction.load([event]);
    await transaction.save([
      { kind: 'settle', event, outcome: 'applied', attempts: 1 },
      { kind: 'position', aggregate: event.aggregate, position: { version: 1, startVersion: 0, state: 'open' } },
    ]);
  });
  expectDurableTransaction();
  await client.db(database).dropDatabase();
});

it('The relay reads rows and follows the stream with read concern majority, and marks with majority and journal', async () => {
  const relay = uniqueName('relay');
  await ensureRelayCollections(client, relay);
  const outbox = namespace(`${fixture.database}.${OUTBOX_COLLECTIONS.outbox}`);
  const stores = createRelayStores({ client, database: relay, namespaces: [outbox] });
  const { eventId } = await fixture.outbox.transaction(({ emit }) => emit(note('n')));
  const aggregate = aggregateKey({ source: 'tests', aggregateType: 'note', aggregateId: 'n' });
  const missing = uniqueId('missing') as EventId;
  sent.length = 0;
  for (const slot of ALL_SLOTS) await stores.reader.readUnsettled({ slot, after: null, limit: 10 });
  await stores.reader.readLanes([{ namespace: outbox, aggregate }], 10);
  await stores.reader.lookUp([eventId, missing].map((id) => ({ namespace: outbox, eventId: id })));
  const stream = await stores.capture.open({ after: null, slots: ALL_SLOTS });
  await stream.close();
  const reads = sent.filter(({ find, aggregate: aggregated }) => find !== undefined || aggregated !== undefined);
  const { outbox: rows, archive, files, heads } = OUTBOX_COLLECTIONS;
  expect(new Set(reads.map((read) => (read['find'] as string | undefined) ?? 'stream'))).toEqual(
    new Set([rows, archive, files, heads, RELAY_COLLECTIONS.doubtedIndexes, 'stream']),
  );
  expect(reads.map(({ readConcern }) => readConcern as unknown)).toEqual(reads.map(() => ({ level: 'majority' })));
  sent.length = 0;
  await stores.marker.mark([
    {
      kind: 'published',
      namespace: outbox,
      eventId,
      relay: 'r',
      epoch: epoch(1),
      messageId: 'm',
      topic: 'notes',
      form: 'original',
      sinceCaptureMs: 1,
    },
  ]);
  const writes = sent.filter(({ update, findAndModify, bulkWrite }) => update ?? findAndModify ?? bulkWrite);
  expect(writes.length).toBeGreaterThan(0);
  for (const { writeConcern } of writes) expect(writeConcern).toMatchObject(DURABLE);
  await client.db(relay).dropDatabase();
});

function expectDurableTransaction(): void {
  const inside = sent.filter(({ autocommit }) => autocommit === false);
  const begins = inside.filter(({ startTransaction }) => startTransaction === true);
  const commits = inside.filter(({ commitTransaction }) => commitTransaction === 1);
  expect(begins).toHaveLength(1);
  expect(begins[0]).toMatchObject({ readConcern: { level: 'snapshot' } });
  expect(commits).toHaveLength(1);
  expect(commits[0]).toMatchObject({ writeConcern: DURABLE });
}
