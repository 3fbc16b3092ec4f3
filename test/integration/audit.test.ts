import type { OutboxDocument } from '@nightporter/contracts';
import { audit, createRetention, type AuditRequest } from '@nightporter/ledger';
import {
  createArchiveFolder,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import { aggregateVersion, type EventId } from '@nightporter/protocol';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { cli } from './cli.support.js';
import { operationsFixture, rowsOf, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
let fixture: OperationsFixture;
let ids: readonly EventId[];

/** Nothing is too young: what is not settled is a difference. */
const AT_ONCE: AuditRequest = { graceMs: 0, lagMs: 0 };

beforeEach(async () => {
  fixture = await operationsFixture(shared);
  ids = [...(await fixture.commit('1', 3)), ...(await fixture.commit('2', 2))];
  await fixture.publish(ids);
  await fixture.settle(ids);
  await fixture.sweep();
});

const inbox = () => fixture.client.db(fixture.consumer).collection<InboxDocument>('inbox');
const positions = () => fixture.client.db(fixture.consumer).collection<PositionDocument>('positions');
const parked = () => fixture.client.db(fixture.consumer).collection<ParkedDocument>('parked');

async function namesOf(request: AuditRequest): Promise<readonly [string, string | null, number | null][]> {
  const { differences } = await audit(fixture.deployment, { ...AT_ONCE, ...request });
  return differences.map(({ eventId, kind, version }) => [kind, eventId, version]);
}

describe('an audit', () => {
  it('of a clean system finds nothing, and counts committed, published and settled alike', async () => {
    const report = await audit(fixture.deployment, { ...AT_ONCE, full: true });
    expect(report).toMatchObject({ differences: [], differencesTotal: 0, notes: [] });
    expect(report.producers).toMatchObject([{ committed: 5, unpublished: 0, present: 5, deleted: 0 }]);
    expect(report.groups).toMatchObject([{ published: 5, settled: 5, different: 0, inFlight: 0, isMarked: true }]);
  });

  it('reads only what is new, and adds up to the same', async () => {
    await audit(fixture.deployment, AT_ONCE);
    const more = await fixture.commit('1', 2);
    await fixture.publish(more);
    await fixture.settle(more.slice(0, 1));
    const second = await audit(fixture.deployment, { lagMs: 0 });
    expect(second.groups).toMatchObject([
      { published: 7, publishedInThisRun: 2, settled: 6, inFlight: 1, different: 0 },
    ]);
    expect(second.differences).toEqual([]);
    await fixture.settle(more.slice(1));
    const third = await audit(fixture.deployment, AT_ONCE);
    expect(third.groups).toMatchObject([{ published: 7, publishedInThisRun: 0, settled: 7, inFlight: 0 }]);
  });

  it('names a difference again until it is mended, without reading all again', async () => {
    await inbox().deleteOne({ eventId: ids[1]! });
    expect(await namesOf({})).toEqual([['missing', ids[1], 2]]);
    const again = await audit(fixture.deployment, AT_ONCE);
    expect(again.differences).toMatchObject([{ kind: 'missing', eventId: ids[1] }]);
    expect(again.groups).toMatchObject([{ published: 5, publishedInThisRun: 0, settled: 4, different: 1 }]);
  });

  it('beside which retention has run is not relied upon: the next one reads the same again', async () => {
    const groups = fixture.client.db(fixture.producer).collection<{ _id: string; revision: number }>('groups');
    const meanwhile = async (): Promise<void> => {
      await groups.updateOne({ _id: 'registry' }, { $inc: { revision: 1 } });
    };
    const disturbed = await audit(fixture.deployment, { ...AT_ONCE, progress: meanwhile });
    expect(disturbed).toMatchObject({ differences: [], groups: [{ settled: 5, isMarked: false }] });
    expect(disturbed.notes.join()).toContain('meanwhile');
    const next = await audit(fixture.deployment, AT_ONCE);
    expect(next.groups).toMatchObject([{ published: 5, publishedInThisRun: 5, isMarked: true }]);
  });

  it('marks on its way only what was compared before retention ran', async () => {
    for (const [index, id] of ids.entries())
      await rowsOf(fixture).updateOne({ _id: id }, { $set: { publishedAt: new Date(1_000 * (index + 1)) } });
    const groups = fixture.client.db(fixture.producer).collection<{ _id: string; revision: number }>('groups');
    const moved: unknown[] = [];
    const move = async ({ rows }: { rows: number }): Promise<void> => {
      if (rows !== 2) return;
      moved.push(await groups.updateOne({ _id: 'registry' }, { $inc: { revision: 1 } }));
    };
    const disturbed = await audit(fixture.deployment, { ...AT_ONCE, progress: move }, { batchRows: 1, markEvery: 1 });
    expect(moved).toHaveLength(1);
    expect(disturbed).toMatchObject({ groups: [{ settled: 5, isMarked: false }] });
    const next = await audit(fixture.deployment, AT_ONCE);
    expect(next.groups).toMatchObject([{ published: 5, publishedInThisRun: 3, isMarked: true }]);
  });

  it('names an open event whose row was deleted until the group has got over it', async () => {
    const [settled, open] = await fixture.commit('3', 2);
    await fixture.publish([settled!, open!]);
    await fixture.settle([settled!]);
    expect(await namesOf({})).toEqual([['missing', open, 2]]);
    await rowsOf(fixture).deleteOne({ _id: open! });
    for (const time of ['the first time', 'the second time']) {
      const report = await audit(fixture.deployment, AT_ONCE);
      expect(report.differences, time).toMatchObject([{ kind: 'deleted-unsettled', eventId: open, version: 2 }]);
      expect(report.groups).toMatchObject([{ published: 7, settled: 6, expired: 0, different: 1 }]);
    }
    await positions().updateOne({ aggregate: fixture.key('3') }, { $set: { version: 2 } });
    const after = await audit(fixture.deployment, AT_ONCE);
    expect(after.groups).toMatchObject([{ published: 7, settled: 6, expired: 1, different: 0 }]);
  });

  it('begins anew at a mark whose open events are named by id alone', async () => {
    await inbox().deleteOne({ eventId: ids[1]! });
    await audit(fixture.deployment, AT_ONCE);
    const marks = fixture.client.db(fixture.consumer).collection('audit_marks');
    expect((await marks.updateOne({}, { $set: { open: [ids[1]!] } })).matchedCount).toBe(1);
    const next = await audit(fixture.deployment, AT_ONCE);
    expect(next.groups).toMatchObject([{ published: 5, publishedInThisRun: 5, settled: 4, different: 1 }]);
  });

  it('counts an open event whose row it cannot read as in flight, and says so', async () => {
    await inbox().deleteOne({ eventId: ids[1]! });
    expect(await namesOf({})).toEqual([['missing', ids[1], 2]]);
    const folder = await mkdtemp(join(tmpdir(), 'nightporter-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const files = createArchiveFolder(folder);
    const run = { client: fixture.client, namespace: fixture.outbox, afterMs: 0, marginMs: 0, pauseMs: 0 };
    await createRetention({ ...run, destination: { kind: 'files', files } }).run();
    const blind = await audit(fixture.deployment, AT_ONCE);
    expect(blind).toMatchObject({ differences: [], groups: [{ published: 5, settled: 4, inFlight: 1, different: 0 }] });
    expect(blind.notes.join()).toContain('cannot be read from here');
    const producers = [{ client: fixture.client, database: fixture.producer, files }];
    const seeing = await audit({ ...fixture.deployment, producers }, AT_ONCE);
    expect(seeing).toMatchObject({ notes: [], differences: [{ kind: 'missing', eventId: ids[1] }] });
  });

  it('that is interrupted says so, and marks nothing that it has not compared', async () => {
    const interrupted = await audit(fixture.deployment, { ...AT_ONCE, signal: AbortSignal.abort() });
    expect(interrupted).toMatchObject({ kind: 'interrupted', groups: [] });
    const next = await audit(fixture.deployment, AT_ONCE);
    expect(next.groups).toMatchObject([{ publishedInThisRun: 5, settled: 5 }]);
  });

  it.each<[string, () => Promise<unknown>, () => readonly unknown[], AuditRequest]>([
    ['an inbox record that is gone', () => inbox().deleteOne({ eventId: ids[1]! }), () => [['missing', ids[1], 2]], {}],
    [
      'a payload altered on its way',
      () => inbox().updateOne({ eventId: ids[0]! }, { $set: { digest: 'other' } }),
      () => [['altered', ids[0], 1]],
      {},
    ],
    [
      'a payload altered in the outbox',
      () => rowsOf(fixture).updateOne({ _id: ids[0]! }, { $set: { payload: { value: 9 } } }),
      () => [['altered-row', ids[0], 1]],
      {},
    ],
    [
      'another event at its version',
      () => inbox().updateOne({ eventId: ids[0]! }, { $set: { eventId: 'another' as EventId } }),
      () => [
        ['conflict', ids[0], 1],
        ['phantom', 'another', 1],
      ],
      { full: true },
    ],
    [
      'a position that is behind',
      () => positions().updateOne({ aggregate: fixture.key('2') }, { $set: { version: 1 } }),
      () => [['position-behind', ids[4], 2]],
      {},
    ],
    [
      'a row that somebody has deleted',
      () => rowsOf(fixture).deleteOne({ _id: ids[1]! }),
      () => [['gap', null, 2]],
      { full: true },
    ],
    [
      'all rows of an aggregate deleted',
      () => rowsOf(fixture).deleteMany({ aggregateId: '2' }),
      () => [['gap', null, 1]],
      { full: true },
    ],
    [
      'all rows of an aggregate deleted, where retention has deleted of another topic alone',
      async () => {
        const groups = fixture.client.db(fixture.producer).collection<{ _id: string }>('groups');
        await groups.updateOne({ _id: 'registry' }, { $set: { deletedTo: { 'other-events': new Date() } } });
        await rowsOf(fixture).deleteMany({ aggregateId: '2' });
      },
      () => [['gap', null, 1]],
      { full: true },
    ],
    ['a message that has no place', () => setAside(), () => [['set-aside', null, null]], {}],
    [
      'a row that was set to PUBLISHED by hand',
      () => rowsOf(fixture).updateOne({ _id: ids[4]! }, { $set: { publishedAt: null } }),
      () => [['altered-status', ids[4], 2]],
      {},
    ],
    [
      'a row that was set to PENDING by hand',
      () => rowsOf(fixture).updateOne({ _id: ids[4]! }, { $set: { status: 'PENDING', publishedAt: null } }),
      () => [['altered-status', ids[4], 2]],
      {},
    ],
  ])('names %s exactly', async (_fault, seed, expected, request) => {
    await seed();
    expect(await namesOf(request)).toEqual(expected());
  });

  async function setAside(): Promise<void> {
    const at = new Date();
    const failure = { code: 'NP_MESSAGE_UNREADABLE', message: 'no envelope', stack: null };
    const document = {
      _id: `${fixture.group}|aside:m1`,
      group: fixture.group,
      state: 'aside',
      count: 1,
      failure,
      firstFailedAt: at,
      lastFailedAt: at,
    };
    await parked().insertOne(document as never);
  }

  it('names what the relay has given up, what waits too long, and what waits behind a dead letter', async () => {
    const [dead, behind] = await fixture.commit('3', 2);
    await fixture.kill(dead!);
    const [first, second] = await fixture.commit('4', 2);
    await fixture.publish([first!, second!]);
    await fixture.park(first!, 'dead');
    await fixture.park(second!, 'behind');
    const [never] = await fixture.commit('5', 1);
    await fixture.publish([never!]);
    const found = await namesOf({});
    expect(found.toSorted()).toEqual(
      [
        ['dead-in-relay', dead, 1],
        ['unpublished', behind, 2],
        ['dead-letter', first, 1],
        ['unsettled', second, 2],
        ['missing', never, 1],
      ].toSorted(),
    );
    // Young ones may be on their way; what is dead stays so.
    const young = await audit(fixture.deployment, { lagMs: 0 });
    expect(young.differences.map(({ kind }) => kind).toSorted()).toEqual(['dead-in-relay', 'dead-letter']);
    expect(young.groups).toMatchObject([{ inFlight: 2, different: 1 }]);
  });

  it('names documents that no emit() has written', async () => {
    const [row] = await rowsOf(fixture).find({ _id: ids[4]! }).toArray();
    const above = { ...row!, _id: 'above' as EventId, aggregateVersion: aggregateVersion(9) };
    await rowsOf(fixture).insertMany([above, { _id: 'odd' as EventId, hello: 'world' } as unknown as OutboxDocument]);
    const found = await namesOf({});
    expect(found.toSorted()).toEqual(
      [
        ['foreign', 'above', 9],
        ['foreign', 'odd', null],
      ].toSorted(),
    );
  });

  it.each(['delete', 'collections'] as const)('still holds after retention: %s', async (kind) => {
    const destination = kind === 'delete' ? { kind } : { kind, bucket: 'day' as const };
    await createRetention({
      client: fixture.client,
      namespace: fixture.outbox,
      destination,
      afterMs: 0,
      marginMs: 0,
      pauseMs: 0,
    }).run();
    const more = await fixture.commit('1', 1);
    await fixture.publish(more);
    await fixture.settle(more);
    const report = await audit(fixture.deployment, { ...AT_ONCE, full: true });
    expect(report.differences).toEqual([]);
    const isGone = kind === 'delete';
    expect(report.producers).toMatchObject([{ committed: 6, present: isGone ? 1 : 6, deleted: isGone ? 5 : 0 }]);
    await positions().updateOne({ aggregate: fixture.key('2') }, { $set: { version: 1 } });
    const names = await namesOf({ full: true });
    expect(names).toContainEqual(isGone ? ['deleted-unsettled', null, 2] : ['position-behind', ids[4], 2]);
  });

  it('of more rows than it asks for one by one finds the same, whatever order ids and publications have', async () => {
    const many = (await Promise.all(['3', '4', '5', '6'].map((id) => fixture.commit(id, 40)))).flat();
    // Published the other way round, so that neither ids nor versions follow the publication.
    for (let end = many.length; end > 0; end -= 40) await fixture.publish(many.slice(end - 40, end));
    await fixture.settle(many);
    const gone = [many[3]!, many[77]!, many[159]!];
    await inbox().deleteMany({ eventId: { $in: gone } });
    await inbox().updateOne({ eventId: many[100]! }, { $set: { digest: 'other' } });
    const report = await audit(fixture.deployment, { ...AT_ONCE, full: true });
    expect(report.differences.map(({ eventId, kind }) => `${kind} ${eventId}`).toSorted()).toEqual(
      [...gone.map((id) => `missing ${id}`), `altered ${many[100]}`].toSorted(),
    );
    expect(report.producers).toMatchObject([{ committed: 165, present: 165 }]);
    expect(report.groups).toMatchObject([{ published: 165, settled: 161, different: 4 }]);
  });

  it('names a record that no ledger has, and none of which the ledger has deleted the event', async () => {
    await inbox().updateOne({ eventId: ids[3]! }, { $set: { eventId: 'another' as EventId } });
    await rowsOf(fixture).deleteMany({ aggregateId: '1' });
    const names = await namesOf({ full: true });
    expect(names.toSorted()).toEqual(
      [
        ['conflict', ids[3], 1],
        ['phantom', 'another', 1],
        ['gap', null, 1],
      ].toSorted(),
    );
  });

  it('says of a group whose database nobody names that it was not audited', async () => {
    const report = await audit({ ...fixture.deployment, groups: [] }, AT_ONCE);
    expect(report.differences).toMatchObject([{ kind: 'not-audited', group: fixture.group }]);
  });
});

describe('the audit in a terminal', () => {
  it('ends with 0 where nothing differs, and with 1 and the difference where something does', async () => {
    const args = ['audit', '--grace-seconds', '0', '--lag-seconds', '0'];
    const clean = await cli(fixture, args);
    expect(clean).toMatchObject({ code: 0, err: '', out: expect.stringContaining('no difference') });
    await inbox().deleteOne({ eventId: ids[1]! });
    const different = await cli(fixture, [...args, '--full', '--json']);
    expect(different.code).toBe(1);
    expect(JSON.parse(different.out)).toMatchObject({
      differencesTotal: 1,
      differences: [{ kind: 'missing', eventId: ids[1] }],
    });
  });
});
