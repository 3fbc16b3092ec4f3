import { connectMongo } from '@nightporter/mongo';
import { ALL_SLOTS, type EventId } from '@nightporter/protocol';
import type { CaptureBatch, CaptureStream } from '@nightporter/relay';
import { setTimeout as sleep } from 'node:timers/promises';
import { MongoClient, type Long } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { databaseOf, outboxOf } from '../conformance/mongo-samples.js';
import { sharedStack } from '../support/stack.js';
import { captures, commit, readIds, readRows, READS_MAX, stores, unavailableBatch } from './mongo-capture.support.js';
import { startMongoProxy } from './mongo-proxy.js';

const shared = sharedDatabase();
const { open, prepareOutbox, outboxOnOwnServer, openStream } = captures(shared);

describe('a change stream of MongoDB', () => {
  it('goes on over a restart of the server, by kill and by order, and loses nothing', async () => {
    const { server, ...rest } = await outboxOnOwnServer();
    const stream = await openStream(rest.capture);
    const expected: EventId[] = [];
    for (const stop of ['kill', 'order'] as const) {
      expected.push(...(await commit(rest, 3)));
      if (stop === 'kill') await server.kill();
      await server.restart();
      expected.push(...(await commit(rest, 2)));
    }
    expect(await readIds(stream, expected.length)).toEqual(expected);
  });

  it('tells how far behind the cluster it has read, and that it is at the end', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const stream = await openStream(stores(client, outbox).capture);
    await commit({ client, outbox }, 1);
    await sleep(2_200);
    const lags: (number | null)[] = [];
    for (let read = 0; read < READS_MAX && !lags.includes(0); read += 1) lags.push((await stream.read()).lagMs);
    const [behind] = lags.filter((lagMs) => lagMs !== 0);
    // clusterTime knows whole seconds.
    expect(behind).toBeGreaterThan(1_000);
    expect(behind).toBeLessThan(10_000);
    expect(lags.at(-1)).toBe(0);
  });

  it('can be resumed at a saved token after a restart of the server', async () => {
    const { server, ...rest } = await outboxOnOwnServer();
    const stream = await openStream(rest.capture);
    await commit(rest, 2);
    const { tokens } = await readRows(stream, 2);
    await stream.close();
    await server.kill();
    await server.restart();
    const later = await commit(rest, 2);
    const resumed = await rest.capture.open({ after: tokens[1]!, slots: ALL_SLOTS });
    open.push(resumed);
    expect(await readIds(resumed, 2)).toEqual(later);
  });

  it('rejects while the server is away, and goes on behind what it delivered', async () => {
    const proxy = await startMongoProxy(sharedStack().mongodbUri);
    const client = await connectMongo({ uri: proxy.uri, serverSelectionMs: 500 });
    open.push(proxy, client);
    const outbox = await prepareOutbox();
    const { capture } = stores(client, outbox);
    const stream = await openStream(capture);
    const writer = { client: shared.client(), outbox };
    const before = await commit(writer, 2);
    expect(await readIds(stream, 2)).toEqual(before);
    const between = await commit(writer, 2);
    proxy.cut();
    const rejected = await readUntilRejected(stream);
    expect(rejected.error).toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    const meanwhile = await commit(writer, 2);
    await expect(stream.read()).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    proxy.restore();
    const rows = await readIdsOnceBack(stream, between.length + meanwhile.length - rejected.ids.length);
    expect([...rejected.ids, ...rows]).toEqual([...between, ...meanwhile]);
  });

  it.each([
    ['between two reads', false],
    ['under a read', true],
  ])('goes on when its cursor is killed %s', async (_when, isReading) => {
    const outbox = await prepareOutbox();
    const client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
    open.push(client);
    const cursors: Long[] = [];
    client.on('commandSucceeded', ({ commandName, reply }) => {
      const { cursor } = reply as { cursor?: { id: Long } };
      if (commandName === 'aggregate' && cursor !== undefined) cursors.push(cursor.id);
    });
    const stream = await openStream(stores(client, outbox).capture);
    const writer = { client: shared.client(), outbox };
    const first = await commit(writer, 1);
    expect(await readIds(stream, 1)).toEqual(first);
    const reading = isReading ? stream.read().catch(unavailableBatch) : undefined;
    // The server does not tell when a read has begun to wait, which it does for a second.
    if (isReading) await sleep(300);
    await shared
      .client()
      .db('admin')
      .command({ killCursors: '$cmd.aggregate', cursors: cursors.slice(-1) });
    const second = await commit(writer, 2);
    const early = await reading;
    const brought = early?.rows.map(({ row }) => row.eventId) ?? [];
    expect([...brought, ...(await readIds(stream, 2 - brought.length))]).toEqual(second);
    expect(cursors.length).toBeGreaterThan(1);
  });

  it('says that a drop and a rename disturbed it, gives the outbox its indexes back, and captures what is written then', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const { capture, warnings } = stores(client, outbox);
    const stream = await openStream(capture);
    for (const disturb of ['drop', 'rename'] as const) {
      if (disturb === 'drop') await outboxOf(client, outbox).drop();
      else await outboxOf(client, outbox).rename('elsewhere');
      // Without heads and indexes: what a producer does that notices nothing.
      const [committed] = await commit({ client, outbox }, 1);
      const { rows, disturbed } = await readRows(stream, 1);
      expect(disturbed).toBe(true);
      expect(rows).toEqual([committed]);
      const indexes = await outboxOf(client, outbox).indexes();
      expect(indexes.map((index) => index.name)).toEqual(
        expect.arrayContaining(['aggregate_version', 'unsettled_by_slot', 'status_published']),
      );
    }
    expect(warnings).toEqual([]);
  });

  it('warns when the indexes cannot be created again, and goes on', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const { capture, warnings } = stores(client, outbox);
    const stream = await openStream(capture);
    await outboxOf(client, outbox).drop();
    const database = client.db(databaseOf(outbox));
    await database
      .collection(outbox.slice(outbox.indexOf('.') + 1))
      .createIndexes([{ key: { slot: 1 }, name: 'status_published' }]);
    const committed = await commit({ client, outbox }, 1);
    expect(await readIds(stream, 1)).toEqual(committed);
    await stream.read();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.message).toContain(outbox);
  });

  it('creates the indexes again that the stream before it could not', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const { capture, warnings } = stores(client, outbox);
    const stream = await openStream(capture);
    const collection = outboxOf(client, outbox);
    await collection.drop();
    await collection.createIndexes([{ key: { slot: 1 }, name: 'status_published' }]);
    await commit({ client, outbox }, 1);
    const { tokens } = await readRows(stream, 1);
    await stream.close();
    expect(warnings).toHaveLength(1);
    await collection.dropIndex('status_published');
    const next = await capture.open({ after: tokens[0]!, slots: ALL_SLOTS });
    open.push(next);
    await next.read();
    expect((await collection.indexes()).map((index) => index.name)).toEqual(
      expect.arrayContaining(['aggregate_version', 'unsettled_by_slot', 'status_published']),
    );
  });

  it('gives the batch of a read that was given up to the next one', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const stream = await openStream(stores(client, outbox).capture);
    const given = stream.read();
    const taken = stream.read();
    expect(await taken).toBe(await given);
  });

  it('moves its token on while nothing is written to the outbox', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const stream = await openStream(stores(client, outbox).capture);
    const before = (await stream.read()).token;
    await client.db(databaseOf(outbox)).collection<{ n: number }>('other').insertOne({ n: 1 });
    let batch: CaptureBatch = await stream.read();
    for (let read = 0; read < 5 && batch.token === before; read += 1) batch = await stream.read();
    expect(batch.token).not.toBe(before);
    expect(batch.rows).toEqual([]);
  });
});

/**
 * The driver looks for a lost server every 500 ms at most, so reads may still be rejected for a while; what they had begun to collect is
 * not lost.
 */
async function readIdsOnceBack(stream: CaptureStream, count: number): Promise<EventId[]> {
  const ids: EventId[] = [];
  const endMs = performance.now() + 20_000;
  while (ids.length < count && performance.now() < endMs) {
    const batch = await stream.read().catch(unavailableBatch);
    ids.push(...(batch?.rows ?? []).map(({ row }) => row.eventId));
  }
  return ids;
}

/** What still came before the failure, and the failure. */
async function readUntilRejected(stream: CaptureStream): Promise<{ ids: EventId[]; error: unknown }> {
  const ids: EventId[] = [];
  for (let read = 0; read < READS_MAX; read += 1) {
    try {
      ids.push(...(await stream.read()).rows.map(({ row }) => row.eventId));
    } catch (error) {
      return { ids, error };
    }
  }
  throw new Error('No read was rejected.');
}
