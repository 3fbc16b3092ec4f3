import { connectMongo, createGroupStores, ensureConsumerCollections, type GroupStores } from '@nightporter/mongo';
import { incomingEvent, uniqueId } from '@nightporter/testing/conformance';
import type { IncomingEvent } from '@nightporter/consumer';
import type { ClientSession, Collection, MongoClient } from 'mongodb';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { sharedStack } from '../support/stack.js';
import { startOwnMongo } from './mongo-own-server.js';
import { startMongoProxy, type MongoProxy } from './mongo-proxy.js';

interface Effect {
  readonly _id: string;
  readonly count?: number;
  readonly marker?: string;
}

interface Group extends GroupStores {
  readonly effects: Collection<Effect>;
}

const shared = sharedDatabase();
let client: MongoClient;
let database: string;
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  client = shared.client();
  database = shared.database('consumer');
  await ensureConsumerCollections(client, database);
  await client.db(database).createCollection('effects');
});
afterEach(async () => {
  for (const resource of open.splice(0)) await resource.close();
});

describe('a transaction of a group, when a handler meets an error of the database', () => {
  it('passes a duplicate key in the handler’s own collection on as the handler’s failure, and commits nothing', async () => {
    const { store, effects } = group(client);
    await effects.insertOne({ _id: 'taken' });
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    const attempt = settle(store, event, async (session) => {
      await effects.insertOne({ _id: event.envelope.eventId }, { session });
      await effects.insertOne({ _id: 'taken' }, { session });
    });
    await expect(attempt).rejects.toMatchObject({ name: 'MongoServerError', code: 11000 });
    expect(await effects.findOne({ _id: event.envelope.eventId })).toBeNull();
    expect(await isSettled(store, event)).toBe(false);
    await effects.deleteOne({ _id: 'taken' });
  });

  it.each(['saves', 'writes on'])(
    'says NP_TRANSACTION_ABORTED at once when a handler has caught a duplicate key and %s',
    async (next) => {
      const { store, effects } = group(client);
      await effects.insertOne({ _id: 'taken' });
      const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
      const startedMs = performance.now();
      const attempt = settle(store, event, async (session) => {
        await effects.insertOne({ _id: event.envelope.eventId }, { session });
        await effects.insertOne({ _id: 'taken' }, { session }).catch(() => undefined);
        if (next === 'writes on') await effects.insertOne({ _id: uniqueId('effect') }, { session });
      });
      await expect(attempt).rejects.toMatchObject({
        code: 'NP_TRANSACTION_ABORTED',
        message: expect.stringContaining('duplicate key'),
      });
      expect(performance.now() - startedMs).toBeLessThan(2_000);
      expect(await effects.findOne({ _id: event.envelope.eventId })).toBeNull();
      expect(await isSettled(store, event)).toBe(false);
      await effects.deleteOne({ _id: 'taken' });
    },
  );

  it('does not commit when the work swallows a failed save', async () => {
    const { store, effects } = group(client);
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    await settle(store, event, () => Promise.resolve());
    const attempt = store.transact(async (transaction) => {
      await effects.insertOne({ _id: event.envelope.eventId }, { session: transaction.session });
      await transaction.save([{ kind: 'settle', event, outcome: 'applied', attempts: 1 }]).catch(() => undefined);
    });
    await expect(attempt).rejects.toMatchObject({ code: 'NP_TRANSACTION_CONFLICT' });
    expect(await effects.findOne({ _id: event.envelope.eventId })).toBeNull();
  });

  it('lets nothing through that a handler has left running', async () => {
    const { store, effects } = group(client);
    for (let round = 0; round < 10; round += 1) {
      const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
      const marker = uniqueId('left-running');
      let left: Promise<unknown> = Promise.resolve();
      const attempt = settle(store, event, async (session) => {
        left = writeUntilRefused(effects, session, marker);
        await sleep(10 + round);
        throw new Error('ran too long');
      });
      await expect(attempt).rejects.toThrow('ran too long');
      await left;
      expect(await effects.countDocuments({ marker })).toBe(0);
    }
  });

  it('leaves no lock behind when the work throws', async () => {
    const { store, effects } = group(client);
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    const write = (session: ClientSession) =>
      effects.updateOne({ _id: 'contended' }, { $inc: { count: 1 } }, { session, upsert: true });
    for (let round = 0; round < 5; round += 1) {
      const attempt = settle(store, event, async (session) => {
        await write(session);
        throw new Error('no stock');
      });
      await expect(attempt).rejects.toThrow('no stock');
    }
    await settle(store, event, async (session) => {
      await write(session);
    });
    expect(await effects.findOne({ _id: 'contended' })).toMatchObject({ count: 1 });
  });
});

describe('a transaction of a group, when the network fails', () => {
  it('commits once when the answer to the commit is lost', async () => {
    const { proxy, store, effects } = await groupBehindProxy();
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    await isSettled(store, event);
    proxy.loseAnswers('commitTransaction', 1);
    await settle(store, event, async (session) => {
      await effects.updateOne({ _id: event.envelope.eventId }, { $inc: { count: 1 } }, { session, upsert: true });
    });
    expect(proxy.lost).toBe(1);
    expect(await effects.findOne({ _id: event.envelope.eventId })).toMatchObject({ count: 1 });
    expect(await isSettled(store, event)).toBe(true);
  });

  it('says NP_STORE_UNAVAILABLE when every answer to the commit is lost, though the commit may have happened', async () => {
    const { proxy, store } = await groupBehindProxy();
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    await isSettled(store, event);
    proxy.loseAnswers('commitTransaction', 1_000_000);
    const attempt = settle(store, event, () => Promise.resolve());
    await expect(attempt).rejects.toMatchObject({
      code: 'NP_STORE_UNAVAILABLE',
      message: expect.stringContaining('outcome of the commit is unknown'),
    });
    expect(proxy.lost).toBeGreaterThan(2);
    expect(await isSettled(group(client).store, event)).toBe(true);
  });

  it('says NP_STORE_UNAVAILABLE when the database goes away under a handler, even if the handler dresses that up', async () => {
    const { proxy, store, effects } = await groupBehindProxy();
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    const attempt = settle(store, event, async (session) => {
      proxy.cut();
      try {
        await effects.insertOne({ _id: event.envelope.eventId }, { session });
      } catch (error) {
        throw new Error('the order could not be written', { cause: error });
      }
    });
    await expect(attempt).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    proxy.restore();
    expect(await isSettled(store, event)).toBe(false);
  });

  it('calls a transaction that a restart of the database ended unavailable, and charges nobody', async () => {
    const own = await startOwnMongo();
    const short = await connectMongo({ uri: own.uri });
    open.push(short, { close: () => own.stop() });
    const { store, effects } = group(short);
    await ensureConsumerCollections(short, database);
    const event = incomingEvent({ aggregateId: uniqueId('a'), version: 1 });
    const attempt = settle(store, event, async (session) => {
      await effects.insertOne({ _id: event.envelope.eventId }, { session });
      await own.kill();
      await own.restart();
    });
    await expect(attempt).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    await settle(store, event, () => Promise.resolve());
    expect(await effects.findOne({ _id: event.envelope.eventId })).toBeNull();
  });
});

function group(connected: MongoClient): Group {
  const stores = createGroupStores({ client: connected, database, group: 'group' });
  return { ...stores, effects: connected.db(database).collection<Effect>('effects') };
}

async function groupBehindProxy(): Promise<Group & { proxy: MongoProxy }> {
  const proxy = await startMongoProxy(sharedStack().mongodbUri);
  const behind = await connectMongo({ uri: proxy.uri, serverSelectionMs: 2_000 });
  open.push(behind, proxy);
  return { ...group(behind), proxy };
}

async function settle(
  store: GroupStores['store'],
  event: IncomingEvent,
  handler: (session: ClientSession) => Promise<void>,
): Promise<void> {
  await store.transact(async (transaction) => {
    await transaction.load([event]);
    await handler(transaction.session);
    const position = { version: event.envelope.aggregateVersion, startVersion: 0, state: 'open' } as const;
    await transaction.save([
      { kind: 'settle', event, outcome: 'applied', attempts: 1 },
      { kind: 'position', aggregate: event.aggregate, position },
    ]);
  });
}

async function writeUntilRefused(effects: Collection<Effect>, session: ClientSession, marker: string): Promise<void> {
  try {
    for (;;) await effects.insertOne({ _id: uniqueId('effect'), marker }, { session });
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
  }
}

async function isSettled(store: GroupStores['store'], event: IncomingEvent): Promise<boolean> {
  const state = await store.transact((transaction) => transaction.load([event]));
  return state.inboxByEvent.has(event.envelope.eventId);
}
