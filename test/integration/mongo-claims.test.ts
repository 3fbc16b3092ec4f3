import { connectMongo, createGroupStores, ensureConsumerCollections } from '@nightporter/mongo';
import { commitChanges, incomingEvent, parkChange } from '@nightporter/testing/conformance';
import { afterAll, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { sharedStack, uniqueName } from '../support/stack.js';

const shared = sharedDatabase();
const open: { close(): Promise<void> }[] = [];
const ALL = { limit: 4, repeatedLimit: 4, togetherMax: 8, claimMs: 60_000, isAlone: true };

afterAll(async () => {
  for (const client of open) await client.close();
});

describe('a claim of parked events, on MongoDB', () => {
  it('costs no attempt when the database fails before its answer is heard', async (context) => {
    const appName = uniqueName('unheard');
    const client = await connectMongo({ uri: sharedStack().mongodbUri, appName });
    open.push(client);
    const database = shared.database('claims');
    const group = 'claimers';
    await ensureConsumerCollections(client, database);
    const { parked, store } = createGroupStores({ client, database, group });
    const events = [1, 2, 3].map((index) => incomingEvent({ aggregateId: `a${index}`, version: 1 }));
    await commitChanges(
      store,
      events,
      events.map((event) => parkChange(event)),
    );
    const admin = shared.client().db('admin');
    const data = { failCommands: ['find'], errorCode: 91, appName };
    const point = { configureFailPoint: 'failCommand', data };
    // The first find looks for what is due, the second reads what was claimed.
    const armed = await admin.command({ ...point, mode: { skip: 1 } }).then(
      () => true,
      () => false,
    );
    if (!armed) return context.skip('the server was started without test commands, so it has no fail points');
    try {
      await expect(parked.claimDue(ALL)).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    } finally {
      await admin.command({ ...point, mode: 'off' });
    }
    const rows = shared.client().db(database).collection('parked');
    expect(await rows.countDocuments({ attempts: 1, isRunning: true })).toBe(3);
    const claimed = await parked.claimDue(ALL);
    expect(claimed.map(({ attempts, isUnanswered }) => [attempts, isUnanswered])).toEqual(
      Array<[number, boolean]>(3).fill([1, false]),
    );
  });

  it('finds the ones that nobody has tried behind any number of others, by an index', async () => {
    const database = shared.database('claims');
    await ensureConsumerCollections(shared.client(), database);
    const { parked, store } = createGroupStores({ client: shared.client(), database, group: 'claimers' });
    const events = Array.from({ length: 60 }, (_, index) => incomingEvent({ aggregateId: `a${index}`, version: 1 }));
    for (const [index, event] of events.entries()) {
      await commitChanges(store, [event], [parkChange(event, { attempts: index < 55 ? 1 : 0 })]);
    }
    const claimed = await parked.claimDue({ ...ALL, repeatedLimit: 2 });
    expect(claimed.map(({ event }) => event.envelope.aggregateId)).toEqual([
      'a0',
      'a1',
      'a55',
      'a56',
      'a57',
      'a58',
      'a59',
    ]);
    const due = { group: 'claimers', state: 'retry', nextRetryAt: { $lte: new Date() } };
    const untried = { ...due, attempts: 0, isSuspect: false };
    const plan = await shared
      .client()
      .db(database)
      .collection('parked')
      .find(untried)
      .sort({ nextRetryAt: 1 })
      .explain();
    expect(JSON.stringify(plan)).toContain('"untried"');
  });

  it('leaves the only place to whichever was due first, tried or not', async () => {
    const database = shared.database('claims');
    await ensureConsumerCollections(shared.client(), database);
    const { parked, store } = createGroupStores({ client: shared.client(), database, group: 'claimers' });
    const events = Array.from({ length: 40 }, (_, index) => incomingEvent({ aggregateId: `a${index}`, version: 1 }));
    for (const [index, event] of events.entries()) {
      await commitChanges(store, [event], [parkChange(event, { attempts: index === 1 ? 0 : 1 })]);
    }
    const claim = async (): Promise<string | undefined> =>
      (await parked.claimDue({ ...ALL, limit: 1, repeatedLimit: 1 }))[0]?.event.envelope.aggregateId;
    expect([await claim(), await claim(), await claim()]).toEqual(['a0', 'a1', 'a2']);
  });
});
