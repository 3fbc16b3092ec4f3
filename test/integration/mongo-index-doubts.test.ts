import type { OutboxDocument } from '@nightporter/contracts';
import {
  RELAY_COLLECTIONS,
  createRelayStores,
  engineOf,
  ensureOutboxCollections,
  ensureRelayCollections,
  type RelayStores,
  type RelayStoresOptions,
} from '@nightporter/mongo';
import { ALL_SLOTS, aggregateKey, eventId, namespace, type Namespace } from '@nightporter/protocol';
import type { CaptureStream } from '@nightporter/relay';
import { MongoClient, type ClientSession, type Collection } from 'mongodb';
import { afterEach, describe, expect, it, type TestContext } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { outboxDocument } from '../conformance/mongo-samples.js';
import { sharedStack } from '../support/stack.js';

const shared = sharedDatabase();
const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

const READS_MAX = 60;
const AT_ONCE = { settleMs: 0, compareEveryMs: 1 };

type Doubts = NonNullable<RelayStoresOptions['indexDoubts']>;

interface World {
  readonly outbox: Collection<OutboxDocument>;
  readonly namespace: Namespace;
  readonly relayDatabase: string;
  /** What a relay has: of the same relay database unless another is named. */
  readonly stores: (doubts?: Doubts, relayDatabase?: string) => RelayStores;
  readonly doubts: () => Promise<readonly string[]>;
}

/**
 * An outbox that a relay's stream has seen dropped, and whose indexes it has created again while a transaction was open: that of version 5,
 * which has committed then, as has version 6 behind it.
 */
async function droppedUnderLoad(context: TestContext): Promise<World> {
  const client = shared.client();
  const { engine } = await engineOf(client);
  context.skip(engine === 'MongoDB', 'an index build of MongoDB waits for the transactions that are open');
  const [database, relayDatabase] = [shared.database('orders'), shared.database('relay')];
  await ensureOutboxCollections(client, database);
  await ensureRelayCollections(client, relayDatabase);
  const own = namespace(`${database}.outbox`);
  const outbox = client.db(database).collection<OutboxDocument>('outbox');
  const stores = (indexDoubts: Doubts = {}, name = relayDatabase): RelayStores =>
    createRelayStores({ client, database: name, namespaces: [own], indexDoubts });
  const stream = await stores().capture.open({ after: null, slots: ALL_SLOTS });
  cleanUp.push(() => stream.close());
  await outbox.drop();
  await outbox.insertOne(row(4));
  const session = client.startSession();
  cleanUp.push(() => session.endSession());
  await commitAround(outbox, session, () => untilDisturbed(stream));
  await outbox.insertOne(row(6));
  const documents = client.db(relayDatabase).collection<{ _id: string }>(RELAY_COLLECTIONS.doubtedIndexes);
  const doubts = async () => (await documents.find().toArray()).map(({ _id }) => _id);
  return { outbox, namespace: own, relayDatabase, stores, doubts };
}

async function commitAround(
  outbox: Collection<OutboxDocument>,
  session: ClientSession,
  meanwhile: () => Promise<void>,
): Promise<void> {
  session.startTransaction();
  await outbox.insertOne(row(5), { session });
  await meanwhile();
  await session.commitTransaction();
}

async function untilDisturbed(stream: CaptureStream): Promise<void> {
  for (let read = 0; read < READS_MAX; read += 1) if ((await stream.read()).disturbed) return;
  throw new Error('the stream does not tell of the drop');
}

const identity = { source: 'orders', aggregateType: 'order', aggregateId: '1' };

function row(version: number): OutboxDocument {
  return outboxDocument({ ...identity, version, id: eventId(`event-${version}`), eventKey: 'key' });
}

async function swept({ reader }: RelayStores): Promise<readonly number[]> {
  const { slot } = row(4);
  return (await reader.readUnsettled({ slot, after: null, limit: 10 })).map((found) => found.aggregateVersion);
}

async function laneOf(world: World, { reader }: RelayStores): Promise<readonly number[]> {
  const lane = { namespace: world.namespace, aggregate: aggregateKey(identity) };
  return (await reader.readLanes([lane], 10)).map((found) => found.aggregateVersion);
}

describe('indexes that were created again under a load', () => {
  it('hide no row from a relay: not from its sweep, nor from its look at a lane, nor from one that takes over', async (context) => {
    const world = await droppedUnderLoad(context);
    for (const stores of [world.stores(), world.stores()]) {
      expect(await swept(stores)).toEqual([4, 5, 6]);
      expect(await laneOf(world, stores)).toEqual([4, 5, 6]);
      expect(await stores.polling.busySlots(ALL_SLOTS)).toContain(row(5).slot);
    }
    // What is guarded against: a relay that knows nothing of it reads by the index.
    expect(await swept(world.stores({}, shared.database('unknowing')))).toEqual([4, 6]);
  });

  it('go page by page like any other', async (context) => {
    const world = await droppedUnderLoad(context);
    const { reader } = world.stores();
    const { slot } = row(4);
    const [first] = await reader.readUnsettled({ slot, after: null, limit: 1 });
    const [second] = await reader.readUnsettled({ slot, after: first!, limit: 1 });
    expect([first!.aggregateVersion, second!.aggregateVersion]).toEqual([4, 5]);
  });

  it('are doubted as long as they lack a row, and trusted again once two comparisons agree', async (context) => {
    const world = await droppedUnderLoad(context);
    const stores = world.stores(AT_ONCE);
    for (let sweep = 0; sweep < 5; sweep += 1) expect(await swept(stores)).toEqual([4, 5, 6]);
    expect(await world.doubts()).toEqual([world.namespace]);
    // Any update of the row puts it into the indexes, as a mark of the relay does.
    await world.outbox.updateOne({ _id: eventId('event-5') }, { $inc: { revision: 1 } });
    await swept(stores);
    expect(await world.doubts()).toEqual([world.namespace]);
    for (let sweep = 0; sweep < 5; sweep += 1) expect(await swept(stores)).toEqual([4, 5, 6]);
    expect(await world.doubts()).toEqual([]);
    expect(await laneOf(world, stores)).toEqual([4, 5, 6]);
  });

  it('are doubted as long as they are not there', async (context) => {
    const world = await droppedUnderLoad(context);
    await world.outbox.dropIndex('unsettled_by_slot');
    const stores = world.stores(AT_ONCE);
    for (let sweep = 0; sweep < 5; sweep += 1) expect(await swept(stores)).toEqual([4, 5, 6]);
    expect(await world.doubts()).toEqual([world.namespace]);
  });

  it('are doubted before they are created, and anew from then on', async () => {
    const client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
    cleanUp.push(() => client.close());
    const [database, relayDatabase] = [shared.database('orders'), shared.database('relay')];
    await ensureOutboxCollections(client, database);
    const namespaces = [namespace(`${database}.outbox`)];
    const { capture } = createRelayStores({ client, database: relayDatabase, namespaces });
    const stream = await capture.open({ after: null, slots: ALL_SLOTS });
    cleanUp.push(() => stream.close());
    await client.db(database).dropCollection('outbox');
    const commands: string[] = [];
    client.on('commandStarted', ({ commandName, command }) => {
      if (commandName === 'createIndexes') commands.push('create');
      if (command['update'] === RELAY_COLLECTIONS.doubtedIndexes) commands.push('doubt');
    });
    await untilDisturbed(stream);
    expect(commands).toEqual(['doubt', 'create', 'doubt']);
  });

  it('are doubted for as long as a transaction of that time may be open', async (context) => {
    const world = await droppedUnderLoad(context);
    await world.outbox.updateMany({}, { $inc: { revision: 1 } });
    const stores = world.stores({ settleMs: 3_600_000, compareEveryMs: 1 });
    for (let sweep = 0; sweep < 5; sweep += 1) await swept(stores);
    expect(await world.doubts()).toEqual([world.namespace]);
  });
});
