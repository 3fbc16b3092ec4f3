import type { Destination, RetentionOptions } from '@nightporter/ledger';
import { OUTBOX_COLLECTIONS, createArchiveFolder, registerGroup } from '@nightporter/mongo';
import { MongoClient } from 'mongodb';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { until } from '../e2e/programs.js';
import { sharedStack } from '../support/stack.js';
import { codeOf } from './outbox-fixture.js';
import { TOPIC, daysAgo, idsOf, retentionFixture, type RetentionFixture } from './retention.support.js';

const shared = sharedDatabase();
const fixture = (): Promise<RetentionFixture> => retentionFixture(shared.client(), shared.database('retention'));
const ada = { by: 'ada', reason: 'the disk is full' };
const rows = (count: number, days: number) =>
  Array.from({ length: count }, (_, index) => ({ aggregateId: `a${index % 3}`, daysAgo: days }));

const WAITING = [
  ['deletes', 'delete'],
  ['archives', 'collections'],
  ['writes files', 'files'],
] as const;

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

/** Two rows that may go, and a registration that has written its registry and does not end. */
async function openRegistration(kind: Destination['kind']) {
  const own = await fixture();
  await own.publish(rows(2, 30));
  await own.group('one', 1);
  const watched = await watchConflicts();
  const folder = kind === 'files' ? await mkdtemp(join(tmpdir(), 'nightporter-retention-')) : null;
  if (folder !== null) cleanUp.push(() => rm(folder, { recursive: true, force: true }));
  const destinations: Record<Destination['kind'], () => Destination> = {
    delete: () => ({ kind: 'delete' }),
    collections: () => ({ kind: 'collections', bucket: 'day' }),
    files: () => ({ kind: 'files', files: createArchiveFolder(folder ?? '') }),
  };
  const session = own.client.startSession();
  cleanUp.push(() => session.endSession());
  session.startTransaction();
  const groups = own.client.db(own.database).collection<{ _id: string }>(OUTBOX_COLLECTIONS.groups);
  await groups.updateOne({ _id: 'registry' }, { $inc: { revision: 1 } }, { session });
  return {
    ...own,
    folder,
    session,
    watched,
    untilConflicts: (count: number) => until(`${count} conflicts`, () => Promise.resolve(watched.conflicts >= count)),
    retention: (options: Partial<RetentionOptions> = {}) =>
      own.retention({ client: watched.client, destination: destinations[kind](), ...options }),
  };
}

/** A client of its own that counts what loses to another transaction. */
async function watchConflicts() {
  const client = new MongoClient(sharedStack().mongodbUri, { monitorCommands: true });
  cleanUp.push(() => client.close());
  const watched = { client, conflicts: 0 };
  client.on('commandFailed', ({ failure }) => {
    if ((failure as { code?: unknown }).code === 112) watched.conflicts += 1;
  });
  await client.connect();
  return watched;
}

describe('retention', () => {
  it('deletes what is old enough and every group has passed, and nothing that is younger or unsettled', async () => {
    const { group, left, publish, registry, retention } = await fixture();
    await publish(rows(5, 30));
    const kept = await publish([
      ...rows(2, 6),
      { aggregateId: 'dead', daysAgo: 30, status: 'DEAD' },
      { aggregateId: 'pending', daysAgo: 30, status: 'PENDING' },
      { aggregateId: 'claimed', daysAgo: 30, status: 'PROCESSING' },
    ]);
    await group('one', 1);
    const before = (await registry())!.revision;
    const result = await retention().run();
    expect(result).toMatchObject({ kind: 'completed', rows: 5, batches: 1, held: [], dropped: [] });
    expect(result.bytes).toBeGreaterThan(5 * 400);
    expect(await left()).toEqual(idsOf(kept));
    expect(await registry()).toMatchObject({ revision: before + 1, deletedTo: { [TOPIC]: daysAgo(30) } });
    expect(await retention().run()).toMatchObject({ rows: 0, batches: 0 });
  });

  it('waits for the group of the topic that is furthest behind, and names it', async () => {
    const { group, left, publish, retention } = await fixture();
    await publish([...rows(2, 30), { aggregateId: 'b', daysAgo: 30, topic: 'stock' }]);
    const kept = await publish(rows(3, 20));
    await group('ahead', 1, [TOPIC, 'stock']);
    await group('behind', 25);
    const result = await retention().run();
    expect(result).toMatchObject({ rows: 3 });
    const because = { kind: 'watermark', group: 'behind', watermarkMs: daysAgo(25).getTime() };
    expect(result.held).toEqual([{ topic: TOPIC, because, oldestMs: daysAgo(20).getTime() }]);
    expect(await left()).toEqual(idsOf(kept));
  });

  it('takes nothing of a topic that no group is registered for, and nothing at all without a group', async () => {
    const { group, left, publish, retention } = await fixture();
    const all = await publish([{ aggregateId: 'a', daysAgo: 30, topic: 'unread' }, ...rows(1, 30)]);
    const nobody = { kind: 'no-group' };
    const first = await retention().run();
    expect(first).toMatchObject({ rows: 0 });
    expect(new Set(first.held.map(({ topic }) => topic))).toEqual(new Set(['unread', TOPIC]));
    await group('one', 1);
    expect(await retention().run()).toMatchObject({ rows: 1, held: [{ topic: 'unread', because: nobody }] });
    expect(await left()).toEqual(idsOf(all.slice(0, 1)));
  });

  it('takes nothing that a group has yet to read from the beginning', async () => {
    const { group, left, publish, retention } = await fixture();
    const all = await publish(rows(2, 30));
    await group('new', null);
    expect(await retention().run()).toMatchObject({ rows: 0, held: [{ because: { group: 'new', watermarkMs: 0 } }] });
    expect(await left()).toEqual(idsOf(all));
  });

  it('goes past watermarks when an operator forces it, and keeps a record of who, why and what came of it', async () => {
    const { actions, group, left, outbox, publish, retention } = await fixture();
    await publish([{ aggregateId: 'a', daysAgo: 30, topic: 'unread' }, ...rows(2, 30)]);
    const young = await publish(rows(1, 6));
    await group('behind', null);
    expect(await codeOf(retention().run({ forced: true }))).toBe('NP_ACTION_INVALID');
    expect(await codeOf(retention().run({ forced: true, operator: { by: ' ', reason: 'x' } }))).toBe(
      'NP_ACTION_INVALID',
    );
    expect(await actions()).toEqual([]);
    expect(await retention().run({ forced: true, operator: ada })).toMatchObject({ rows: 3 });
    expect(await left()).toEqual(idsOf(young));
    expect(await actions()).toMatchObject([
      {
        action: 'forced-retention',
        target: outbox,
        ...ada,
        details: { destination: 'delete' },
        outcome: { kind: 'completed', rows: 3 },
      },
    ]);
  });

  it('keeps a record of a run that an operator starts, and none of one that the relay does', async () => {
    const { actions, group, publish, retention } = await fixture();
    await publish(rows(2, 30));
    await group('one', 1);
    await retention().run();
    expect(await actions()).toEqual([]);
    await retention().run({ operator: ada });
    expect(await actions()).toMatchObject([{ action: 'retention', ...ada, outcome: { rows: 0 } }]);
  });

  it('goes batch by batch, stops behind the one in hand when it is told to, and goes on from there', async () => {
    const { group, left, publish, retention } = await fixture();
    const all = await publish(rows(10, 30));
    await group('one', 1);
    const abort = new AbortController();
    const seen: number[] = [];
    const first = await retention({ batchRowsMax: 3, pauseMs: 600_000 }).run({
      signal: abort.signal,
      progress: ({ rows: moved }) => {
        seen.push(moved);
        abort.abort();
      },
    });
    expect(first).toMatchObject({ kind: 'interrupted', rows: 3, batches: 1 });
    expect(seen).toEqual([3]);
    expect(await left()).toHaveLength(all.length - 3);
    const second = await retention({ batchRowsMax: 3 }).run();
    expect(second).toMatchObject({ kind: 'completed', rows: 7, batches: 3 });
    expect(await left()).toEqual([]);
  });

  it('rests between batches for as long as it was told to', async () => {
    const { group, publish, retention } = await fixture();
    await publish(rows(3, 30));
    await group('one', 1);
    const moments: number[] = [];
    await retention({ batchRowsMax: 1, pauseMs: 300 }).run({
      progress: () => {
        moments.push(performance.now());
      },
    });
    expect(moments[1]! - moments[0]!).toBeGreaterThanOrEqual(299);
  });

  it('stops at once for a group that registers between two batches', async () => {
    const { client, database, group, left, publish, retention } = await fixture();
    await publish(rows(6, 30));
    await group('one', 1);
    // Into an archive, since a group from the beginning is refused where anything is gone for good.
    const result = await retention({ batchRowsMax: 2, destination: { kind: 'collections', bucket: 'day' } }).run({
      progress: async ({ batches }) => {
        if (batches === 1) await registerGroup(client, database, { group: 'late', topics: [TOPIC] });
      },
    });
    expect(result).toMatchObject({ rows: 2, held: [{ because: { group: 'late' } }] });
    expect(await left()).toHaveLength(4);
  });

  it.each([
    ['deletes', { kind: 'delete' }],
    ['archives', { kind: 'collections', bucket: 'day' }],
  ] as const)(
    'leaves a row alone that is unsettled again when its batch comes, where it %s',
    async (_what, destination) => {
      const { client, database, group, left, publish, retention } = await fixture();
      const published = await publish(rows(6, 30));
      await group('one', 1);
      const outbox = client.db(database).collection<{ _id: string }>(OUTBOX_COLLECTIONS.outbox);
      const again: string[] = [];
      const result = await retention({ batchRowsMax: 2, destination }).run({
        // Whatever the first batch has left was read together with it.
        progress: async ({ batches }) => {
          if (batches > 1) return;
          again.push(...(await left()).slice(0, 1));
          await outbox.updateOne({ _id: again[0]! }, { $set: { status: 'PENDING', unsettled: true } });
        },
      });
      expect(result).toMatchObject({ kind: 'completed', rows: published.length - 1 });
      expect(await left()).toEqual(again);
    },
  );

  it('conflicts with a registration that runs beside it, whichever commits first', async () => {
    const { client, database, group, left, publish, retention } = await fixture();
    await publish(rows(2, 30));
    await group('one', 1);
    const groups = client.db(database).collection<{ _id: string }>(OUTBOX_COLLECTIONS.groups);
    await client.withSession(async (session) => {
      session.startTransaction();
      await groups.find({}, { session }).toArray();
      expect(await retention().run()).toMatchObject({ rows: 2 });
      const registering = groups.updateOne({ _id: 'registry' }, { $inc: { revision: 1 } }, { session });
      await expect(registering).rejects.toMatchObject({ code: 112 });
    });
    await publish(rows(2, 30));
    await client.withSession(async (session) => {
      session.startTransaction();
      await groups.updateOne({ _id: 'registry' }, { $inc: { revision: 1 } }, { session });
      await expect(retention({ conflictMs: 200 }).run()).rejects.toMatchObject({
        code: 'NP_STORE_UNAVAILABLE',
        message: expect.stringMatching(
          /^retention of 2 rows of .* conflicts in a row in \d+ ms, and the limit is 200 ms/,
        ),
      });
      await session.abortTransaction();
    });
    expect(await left()).toHaveLength(2);
  });

  it.each(WAITING)(
    'waits for a registration that stays open, where it %s, and goes on when that ends',
    async (_what, kind) => {
      const own = await openRegistration(kind);
      // Far more than it takes to lose at once.
      const running = own.retention().run();
      await own.untilConflicts(22);
      await own.session.abortTransaction();
      expect(await running).toMatchObject({ kind: 'completed', rows: 2 });
      expect(await own.left()).toEqual([]);
    },
  );

  it('lets the registration of a group wait for it, too', async () => {
    const { client, database, session, untilConflicts, watched } = await openRegistration('delete');
    const registering = registerGroup(watched.client, database, { group: 'late', topics: [TOPIC] });
    await untilConflicts(12);
    await session.abortTransaction();
    await registering;
    const groups = client.db(database).collection<{ _id: string }>(OUTBOX_COLLECTIONS.groups);
    expect(await groups.countDocuments({ _id: 'late' })).toBe(1);
  });

  it.each(WAITING)(
    'that waits for a registration, where it %s, ends when it is told to, with nothing moved',
    async (_what, kind) => {
      const own = await openRegistration(kind);
      const abort = new AbortController();
      const running = own.retention({ conflictMs: 600_000 }).run({ signal: abort.signal });
      await own.untilConflicts(3);
      abort.abort();
      expect(await running).toMatchObject({ kind: 'interrupted', rows: 0 });
      expect(await own.left()).toHaveLength(2);
      if (own.folder !== null)
        expect(await readdir(own.folder, { recursive: true })).not.toContainEqual(expect.stringMatching(/ndjson/));
    },
  );

  it('refuses options that are out of range', async () => {
    const { retention } = await fixture();
    expect(() => retention({ afterMs: -1 })).toThrow(/afterMs of a retention is -1; accepted: a whole number from 0/);
    expect(() => retention({ batchRowsMax: 0 })).toThrow(/batchRowsMax/);
  });
});
