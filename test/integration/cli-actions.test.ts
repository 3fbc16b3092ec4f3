import type { InboxDocument, ParkedDocument } from '@nightporter/mongo';
import { ensureNotificationCollections, notificationCollections } from '@nightporter/notification-worker';
import type { EventId } from '@nightporter/protocol';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { sharedStack } from '../support/stack.js';
import { cli, cliAlone } from './cli.support.js';
import { operationsFixture, rowsOf, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
const ADA = ['--by', 'ada', '--reason', 'looked into it'];
let fixture: OperationsFixture;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
});

const run = (...args: readonly string[]) => cli(fixture, args);
const statusOf = async (id: EventId) => (await rowsOf(fixture).findOne({ _id: id }))?.status;
const parkedOf = (id: EventId) =>
  fixture.client.db(fixture.consumer).collection<ParkedDocument>('parked').findOne({ 'event.eventId': id });
const inboxOf = (id: EventId) =>
  fixture.client.db(fixture.consumer).collection<InboxDocument>('inbox').findOne({ eventId: id });

describe('what cannot be undone', () => {
  it('is done with --yes, or when somebody types yes, and never when nobody can be asked', async () => {
    const [id] = await fixture.commit('1', 1);
    await fixture.kill(id!);
    const skip = ['outbox', 'skip', id!, ...ADA];
    expect(await cli(fixture, skip)).toMatchObject({ code: 2, err: expect.stringContaining('accepted: --yes') });
    expect(await cli(fixture, skip, { answers: ['no'] })).toMatchObject({
      code: 1,
      err: expect.stringContaining('Nothing was done'),
    });
    expect(await statusOf(id!)).toBe('DEAD');
    expect(await cli(fixture, skip, { answers: ['yes'] })).toMatchObject({ code: 0 });
    expect(await rowsOf(fixture).findOne({ _id: id! })).toMatchObject({ status: 'PENDING', skip: { by: 'ada' } });
    expect(await run(...skip, '--yes')).toMatchObject({ code: 1, out: expect.stringContaining('is PENDING') });
  });

  it('and whatever is decided needs a name and a reason', async () => {
    expect((await run('outbox', 'retry', 'some-event', '--by', 'ada')).code).toBe(2);
    expect((await run('outbox', 'retry', 'some-event', '--by', ' ', '--reason', 'why')).code).toBe(2);
  });
});

describe('rows that the relay has given up', () => {
  it('are listed and tried again, on record', async () => {
    const [dead, other] = [...(await fixture.commit('1', 1)), ...(await fixture.commit('2', 1))];
    await fixture.kill(dead!);
    const listed = await run('outbox', 'list');
    expect(listed.out).toContain(dead!);
    expect(listed.out).not.toContain(other!);
    expect((await run('outbox', 'retry', dead!, ...ADA)).code).toBe(0);
    expect(await statusOf(dead!)).toBe('PENDING');
    expect((await run('outbox', 'retry', 'nobody', ...ADA)).code).toBe(1);
    const log = await run('log', '--json');
    expect(JSON.parse(log.out)).toMatchObject([
      { action: 'retry-event', by: 'ada', target: dead!, database: fixture.producer },
    ]);
  });
});

describe('dead letters', () => {
  let ids: readonly EventId[];
  beforeEach(async () => {
    ids = await fixture.commit('1', 2);
    await fixture.publish(ids);
    await fixture.park(ids[0]!, 'dead');
    await fixture.park(ids[1]!, 'behind');
  });

  it('are listed, shown, and tried again', async () => {
    expect((await run('dead', 'list', fixture.group)).out).toContain('NP_HANDLER_FAILED: no such product');
    const shown = await run('dead', 'show', fixture.group, ids[0]!);
    expect(shown).toMatchObject({ code: 0, out: expect.stringContaining('1 event of the aggregate behind it') });
    expect((await run('dead', 'show', fixture.group, 'nobody')).code).toBe(1);
    expect((await run('dead', 'retry', fixture.group, ids[0]!, ...ADA)).code).toBe(0);
    expect(await parkedOf(ids[0]!)).toMatchObject({ state: 'retry', attempts: 0 });
    expect(await run('dead', 'retry', fixture.group, ids[0]!, ...ADA)).toMatchObject({
      code: 1,
      out: expect.stringContaining('no such dead letter'),
    });
  });

  it('are edited with the data of a file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nightporter-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'data.json');
    const edit = ['dead', 'edit', fixture.group, ids[0]!, '--data', file, ...ADA];
    expect((await run(...edit)).code).toBe(2);
    await writeFile(file, '{"value":7}');
    expect(await run(...edit)).toMatchObject({ code: 2, err: expect.stringContaining('accepted: --yes') });
    expect((await cli(fixture, edit, { answers: ['no'] })).code).toBe(1);
    expect(await parkedOf(ids[0]!)).toMatchObject({ state: 'dead' });
    expect((await run(...edit, '--yes')).code).toBe(0);
    const parked = await parkedOf(ids[0]!);
    expect(JSON.parse(parked!.event.envelope)).toMatchObject({ data: { value: 7 } });
    expect(parked!.edit).toMatchObject({ by: 'ada' });
  });

  it('are skipped, one or all that a filter finds, and a filter is needed', async () => {
    expect((await run('dead', 'skip', fixture.group, ...ADA, '--yes')).code).toBe(2);
    const dry = await run('dead', 'skip', fixture.group, '--failure', 'no such', ...ADA, '--dry-run', '--json');
    expect(dry.code).toBe(0);
    expect(JSON.parse(dry.out)).toMatchObject([{ eventId: ids[0]! }]);
    expect(await parkedOf(ids[0]!)).toMatchObject({ state: 'dead' });
    const skipped = await run('dead', 'skip', fixture.group, '--failure', 'no such', ...ADA, '--yes');
    expect(skipped).toMatchObject({ code: 0, out: expect.stringContaining(`${ids[0]!}: done`) });
    expect(await inboxOf(ids[0]!)).toMatchObject({ outcome: 'skipped' });
    expect(await parkedOf(ids[1]!)).toMatchObject({ state: 'retry' });
  });

  it('of a group whose database is not known are refused with what is accepted', async () => {
    expect(await run('dead', 'list', 'strangers')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--group-db strangers='),
    });
  });
});

describe('notifications that could not be sent', () => {
  const key = '019a0000-0000-7000-8000-000000000001:webhook:ada';

  beforeEach(async () => {
    const { client, consumer } = fixture;
    await ensureNotificationCollections(client, consumer);
    await notificationCollections(client.db(consumer)).notifications.insertOne({
      ...{ _id: key, channel: 'webhook', recipient: 'ada', orderId: 'o-1', eventType: 'OrderPaid', eventId: 'e-1' },
      ...{ occurredAt: '2026-01-02T03:04:05.006Z', subject: 'paid', text: 'It is paid.' },
      ...{ state: 'dead', attempts: 4, nextAttemptAt: new Date(0), revision: 5 },
    });
  });

  it('are listed and sent again, on record, and what is not dead is told by the exit code', async () => {
    const place = ['--notification-db', fixture.consumer];
    const { mongodbUri } = sharedStack();
    const notifications = (command: string, ...args: readonly string[]) =>
      cliAlone(['notifications', command, '--mongodb-uri', mongodbUri, ...place, ...args]);
    expect(await notifications('dead')).toMatchObject({ code: 0, out: expect.stringContaining(key) });
    expect((await notifications('retry', key)).code).toBe(2);
    vi.stubEnv('NIGHTPORTER_OPERATOR', 'ada');
    onTestFinished(() => void vi.unstubAllEnvs());
    const why = ['--reason', 'the receiver is back'];
    expect((await notifications('retry', ...why)).code).toBe(2);
    expect(await notifications('retry', key, ...why)).toMatchObject({ code: 0, out: '1 notification due again\n' });
    expect((await notifications('retry', key, ...why)).code).toBe(1);
    expect((await notifications('retry', '--all', ...why)).code).toBe(1);
    expect(await notifications('dead')).toMatchObject({ code: 0, out: 'None.\n' });
    const log = await run('log', '--json');
    expect(JSON.parse(log.out)).toMatchObject([
      { action: 'retry-notifications', by: 'ada', target: key, reason: 'the receiver is back' },
    ]);
  });
});

describe('a replay', () => {
  it('is shown first, and parks what the group is missing', async () => {
    const ids = await fixture.commit('1', 2);
    await fixture.publish(ids);
    await fixture.settle(ids.slice(0, 1));
    // A replay leaves the last ten seconds to the sweep.
    await rowsOf(fixture).updateMany({}, { $set: { publishedAt: new Date(Date.now() - 60_000) } });
    const args = ['replay', fixture.group, '--aggregates', fixture.key('1'), ...ADA];
    expect((await run(...args, '--dry-run')).out).toContain('2 events of 1 aggregates are selected');
    expect(await parkedOf(ids[1]!)).toBeNull();
    const replayed = await run(...args, '--json');
    expect(JSON.parse(replayed.out)).toMatchObject({ events: 2, parked: 1, known: 1 });
    expect(await parkedOf(ids[1]!)).not.toBeNull();
  });
});

describe('groups', () => {
  it('are listed, and removed from the registry', async () => {
    expect((await run('groups', 'list')).out).toContain(fixture.consumer);
    const removed = await run('groups', 'remove', fixture.group, ...ADA, '--yes');
    expect(removed).toMatchObject({ code: 0, out: expect.stringContaining(`Taken out of ${fixture.producer}`) });
    expect((await run('groups', 'remove', fixture.group, ...ADA, '--yes')).code).toBe(1);
  });
});

describe('the relay', () => {
  it('is shown, paused and resumed; what is so already is 1', async () => {
    expect((await run('relay', 'show')).code).toBe(1);
    await fixture.lease();
    expect((await run('relay', 'pause', '--topic', 'sample-events', ...ADA)).code).toBe(0);
    expect(await run('relay', 'pause', '--topic', 'sample-events', ...ADA)).toMatchObject({
      code: 1,
      out: expect.stringContaining('by ada'),
    });
    expect(await run('relay', 'show')).toMatchObject({ code: 0, out: expect.stringContaining('topic:sample-events') });
    expect((await run('relay', 'resume', '--topic', 'sample-events', ...ADA)).code).toBe(0);
    expect((await run('relay', 'resume', '--topic', 'sample-events', ...ADA)).code).toBe(1);
  });
});

describe('an archive by hand', () => {
  it('moves what every group has passed', async () => {
    const ids = await fixture.commit('1', 1);
    await fixture.publish(ids);
    await fixture.settle(ids);
    await fixture.sweep();
    await rowsOf(fixture).updateMany({}, { $set: { publishedAt: new Date(Date.now() - 600_000) } });
    const moved = await run('archive', '--to', 'collections', '--after-hours', '0', ...ADA, '--yes', '--json');
    expect(JSON.parse(moved.out)).toMatchObject([
      { producer: fixture.producer, result: { kind: 'completed', rows: 1 } },
    ]);
    expect(await rowsOf(fixture).countDocuments()).toBe(0);
    expect((await run('archive', '--to', 'files', ...ADA, '--yes')).code).toBe(2);
  });
});

describe('tail', () => {
  it('prints each event once, until it is ended', async () => {
    const ended = cli(fixture, ['tail', '--every-ms', '100', '--limit', '3', '--json']);
    const ids = await fixture.commit('1', 3);
    const { code, out } = await ended;
    expect(code).toBe(0);
    const printed = out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { eventId: EventId }).eventId);
    expect(printed.toSorted()).toEqual(ids.toSorted());
    const stopped = await cli(fixture, ['tail'], { signal: AbortSignal.abort() });
    expect(stopped).toMatchObject({ code: 0, out: '' });
  });
});

describe('the doctor', () => {
  /** Whatever the environment says. */
  const NO_BROKER = ['--rocketmq-endpoints', ''];
  const checks = (out: string) =>
    (JSON.parse(out) as { severity: string; check: string }[])
      .filter(({ severity }) => severity !== 'note')
      .map(({ check }) => check);

  it('finds nothing but notes in a clean system, and names what is seeded, with what mends it', async () => {
    await fixture.lease();
    await fixture.sweep();
    const clean = await run('doctor', '--json', ...NO_BROKER);
    expect(checks(clean.out)).toEqual([]);
    expect(clean.code).toBe(0);
    const [dead, pending] = [...(await fixture.commit('1', 1)), ...(await fixture.commit('2', 1))];
    await fixture.kill(dead!);
    await rowsOf(fixture).updateOne({ _id: pending! }, { $set: { createdAt: new Date(Date.now() - 600_000) } });
    await rowsOf(fixture).dropIndex('status_published');
    await run('relay', 'pause', ...ADA);
    const groups = fixture.client.db(fixture.producer).collection<{ _id: string }>('groups');
    const old = { topics: ['sample-events'], state: 'live', watermark: new Date(0), registeredAt: new Date(0) };
    await groups.insertOne({ _id: 'forgotten', ...old });
    const found = await run('doctor', '--json', ...NO_BROKER);
    expect(found.code).toBe(1);
    expect(checks(found.out).toSorted()).toEqual(['group', 'group', 'indexes', 'outbox', 'outbox', 'relay']);
    const told = await run('doctor', ...NO_BROKER);
    expect(told.out).toContain('nightporter groups remove forgotten');
    expect(told.out).toContain('status_published');
    expect(told.out).toContain('nightporter relay resume --by');
  });
});

describe('completions', () => {
  it.each(['bash', 'zsh', 'fish'])('for %s know commands and options', async (shell) => {
    const { runCli } = await import('@nightporter/cli');
    let out = '';
    const io = {
      out: (text: string) => (out += text),
      err: () => undefined,
      isInteractive: false,
      ask: () => Promise.resolve(''),
      signal: new AbortController().signal,
    };
    expect(await runCli(['completions', shell], io)).toBe(0);
    for (const word of ['timeline', 'resume', 'correlation']) expect(out).toContain(word);
  });
});
