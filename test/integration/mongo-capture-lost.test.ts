import { connectMongo } from '@nightporter/mongo';
import { ALL_SLOTS, resumeToken, type EventId } from '@nightporter/protocol';
import type { Capture } from '@nightporter/relay';
import { BSON } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { databaseOf } from '../conformance/mongo-samples.js';
import { sharedStack, uniqueName } from '../support/stack.js';
import { captures, commit, readIds, readRows, stores } from './mongo-capture.support.js';

const shared = sharedDatabase();
const { open, prepareOutbox, outboxOnOwnServer, openStream } = captures(shared);

describe('a change stream of MongoDB', () => {
  it('says NP_CAPTURE_LOST when the history behind the token is gone', async () => {
    const { capture, ...rest } = await outboxOnOwnServer({ engine: 'SecantusDB', oplogMaxEntries: 1_000 });
    const stream = await openStream(capture);
    await commit(rest, 1);
    const { tokens } = await readRows(stream, 1);
    await stream.close();
    const filler = rest.client.db('filler').collection<{ n: number }>('filler');
    for (let round = 0; round < 5; round += 1) {
      await filler.insertMany(Array.from({ length: 1_000 }, (_, n) => ({ n })));
    }
    await expect(openAndRead(capture, tokens[0]!)).rejects.toMatchObject({ code: 'NP_CAPTURE_LOST' });
  });

  it('says NP_CAPTURE_LOST when the server refuses twice to go on from a place', async (context) => {
    const appName = uniqueName('refused');
    const client = await connectMongo({ uri: sharedStack().mongodbUri, appName });
    open.push(client);
    const outbox = await prepareOutbox();
    const stream = await openStream(stores(client, outbox).capture);
    await stream.read();
    const point = { configureFailPoint: 'failCommand', data: { failCommands: ['getMore'], errorCode: 2, appName } };
    const admin = shared.client().db('admin');
    const armed = await admin.command({ ...point, mode: 'alwaysOn' }).then(
      () => true,
      () => false,
    );
    if (!armed) return context.skip('the server was started without test commands, so it has no fail points');
    try {
      await expect(stream.read()).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
      await expect(stream.read()).rejects.toMatchObject({ code: 'NP_CAPTURE_LOST' });
    } finally {
      await admin.command({ ...point, mode: 'off' });
    }
    await expect(stream.read()).rejects.toMatchObject({ code: 'NP_CAPTURE_LOST' });
  });

  it.each([
    ['not a token', 'no JSON at all'],
    ['of the wrong shape', '{"token":1}'],
    ['of no server', '{"_data":"82FFFFFFFF000000012B0229296E04"}'],
    ['empty', '{"_data":""}'],
  ])('says NP_CAPTURE_LOST of a token that is %s', async (_name, token) => {
    const { capture } = stores(shared.client(), await prepareOutbox());
    await expect(openAndRead(capture, resumeToken(token))).rejects.toMatchObject({ code: 'NP_CAPTURE_LOST' });
  });

  it('resumes at a token of another collection’s stream, or says NP_CAPTURE_LOST, but never goes on in silence', async () => {
    const client = shared.client();
    const outbox = await prepareOutbox();
    const other = client.db(databaseOf(outbox)).collection<{ n: number }>('other');
    const foreign = other.watch([], { maxAwaitTimeMS: 100 });
    open.push(foreign);
    // Opens the stream: an insert that overtook that would never come.
    await foreign.tryNext();
    await other.insertOne({ n: 1 });
    await foreign.next();
    const token = resumeToken(BSON.EJSON.stringify(foreign.resumeToken, { relaxed: false }));
    const committed = await commit({ client, outbox }, 2);
    const outcome = await resumeOrLose(stores(client, outbox).capture, token);
    expect(outcome === 'lost' || JSON.stringify(outcome) === JSON.stringify(committed)).toBe(true);
  });
});

async function openAndRead(capture: Capture, after: ReturnType<typeof resumeToken>): Promise<void> {
  const stream = await capture.open({ after, slots: ALL_SLOTS });
  open.push(stream);
  await stream.read();
}

async function resumeOrLose(capture: Capture, after: ReturnType<typeof resumeToken>): Promise<EventId[] | 'lost'> {
  try {
    const stream = await capture.open({ after, slots: ALL_SLOTS });
    open.push(stream);
    return await readIds(stream, 2);
  } catch (error) {
    expect(error).toMatchObject({ code: 'NP_CAPTURE_LOST' });
    return 'lost';
  }
}
