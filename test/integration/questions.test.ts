import {
  aggregateHistory,
  createRetention,
  discoverDeployment,
  search,
  status,
  timeline,
  type Timeline,
} from '@nightporter/ledger';
import { createArchiveFolder, createOutboxActions, pauseRelay } from '@nightporter/mongo';
import { eventId, type EventId } from '@nightporter/protocol';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { operationsFixture, type OperationsFixture } from './operations.support.js';

const shared = sharedDatabase();
const ada = { by: 'ada', reason: 'looked into it' };
let fixture: OperationsFixture;

beforeEach(async () => {
  fixture = await operationsFixture(shared);
});

async function known(id: EventId): Promise<Extract<Timeline, { kind: 'known' }>> {
  const found = await timeline(fixture.deployment, id);
  if (found.kind !== 'known') throw new Error(`the event is ${found.kind}`);
  return found;
}

describe('the timeline of an event', () => {
  it('tells of one that went all the way when it was created, captured, published and settled, in that order', async () => {
    const [id] = await fixture.commit('1', 1, { tenantId: 'acme' });
    await fixture.publish([id!]);
    await fixture.settle([id!]);
    const found = await known(id!);
    expect(found.steps.map(({ group, kind }) => [group, kind])).toEqual([
      [null, 'created'],
      [null, 'captured'],
      [null, 'published'],
      [fixture.group, 'received'],
      [fixture.group, 'settled'],
    ]);
    expect(found.relay).toEqual({ kind: 'published', form: 'original' });
    expect(found.publication).toMatchObject({
      messageId: `message-${id!}`,
      topic: 'sample-events',
      relay: 'relay-a',
      epoch: 3,
    });
    expect(found.groups).toMatchObject([
      { group: fixture.group, verdict: { kind: 'settled', outcome: 'applied' }, attempts: 1 },
    ]);
    expect(found.event).toMatchObject({
      version: 1,
      status: 'PUBLISHED',
      place: 'outbox',
      headers: { tenantId: 'acme' },
    });
  });

  it('names the dead version that another waits behind, in the relay', async () => {
    const [first, second] = await fixture.commit('1', 2);
    await fixture.lease();
    expect((await known(first!)).relay).toEqual({ kind: 'waiting', relays: ['relay-a'] });
    await fixture.kill(first!);
    expect((await known(first!)).relay).toMatchObject({
      kind: 'dead',
      lastError: 'the broker found it illegal',
      attempts: 4,
    });
    expect((await known(second!)).relay).toEqual({
      kind: 'behind',
      first: { version: 1, eventId: first!, status: 'DEAD' },
    });
    await createOutboxActions(fixture.client).retry({ namespace: fixture.outbox, eventId: first!, ...ada });
    const retried = await known(first!);
    expect(retried.relay.kind).toBe('waiting');
    expect(retried.steps).toContainEqual(
      expect.objectContaining({ kind: 'operator', text: 'ada: retry-event (looked into it)' }),
    );
  });

  it('says that no relay is there, and that it was paused by whom', async () => {
    const [id] = await fixture.commit('1', 1);
    expect((await known(id!)).relay).toEqual({ kind: 'no-relay' });
    await pauseRelay(fixture.client, fixture.relayDatabase, { topic: 'sample-events', ...ada });
    expect((await known(id!)).relay).toMatchObject({ kind: 'paused', pause: { scope: 'sample-events', by: 'ada' } });
  });

  it('tells a dead letter in a group, what waits behind it, and what was published and never came', async () => {
    const ids = await fixture.commit('1', 3);
    const [other] = await fixture.commit('2', 1);
    await fixture.publish([...ids, other!]);
    await fixture.settle(ids.slice(0, 1));
    await fixture.park(ids[1]!, 'dead');
    await fixture.park(ids[2]!, 'behind');
    const verdictOf = async (id: EventId) => (await known(id)).groups[0]?.verdict;
    expect(await verdictOf(ids[1]!)).toMatchObject({
      kind: 'dead-letter',
      attempts: 2,
      failure: { message: 'no such product' },
    });
    expect(await verdictOf(ids[2]!)).toEqual({
      kind: 'behind',
      isReceived: true,
      first: { version: 2, eventId: ids[1]!, status: 'dead' },
    });
    expect(await verdictOf(other!)).toEqual({ kind: 'not-received' });
    await fixture.sweep();
    expect(await verdictOf(other!)).toMatchObject({ kind: 'lost' });
  });

  it.each(['collections', 'files'] as const)('finds an event that retention has moved to %s', async (kind) => {
    const [id] = await fixture.commit('1', 1);
    await fixture.publish([id!]);
    await fixture.settle([id!]);
    await fixture.sweep();
    const folder = await mkdtemp(join(tmpdir(), 'nightporter-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const files = createArchiveFolder(folder);
    const destination = kind === 'files' ? { kind, files } : { kind, bucket: 'day' as const };
    const run = { client: fixture.client, namespace: fixture.outbox, destination, afterMs: 0, marginMs: 0, pauseMs: 0 };
    expect(await createRetention(run).run()).toMatchObject({ rows: 1 });
    const producers = [{ client: fixture.client, database: fixture.producer, files }];
    const found = await timeline({ ...fixture.deployment, producers }, id!);
    expect(found).toMatchObject({ kind: 'known', groups: [{ verdict: { kind: 'settled' } }] });
    expect(found.kind === 'known' && found.event.place).not.toBe('outbox');
    const history = await aggregateHistory({ ...fixture.deployment, producers }, fixture.key('1'));
    expect(history.entries).toMatchObject([
      { version: 1, event: { eventId: id! }, groups: { [fixture.group]: 'applied' } },
    ]);
    if (kind === 'files') {
      const without = await timeline(fixture.deployment, id!);
      expect(without).toMatchObject({ kind: 'only-in-groups' });
      expect(without.notKnown.join()).toContain('no archive folder is configured here');
      const untold = await aggregateHistory(fixture.deployment, fixture.key('1'));
      expect(untold).toMatchObject({ headVersion: 1, entries: [{ version: 1, event: null }] });
      expect(untold.notKnown.join(' ')).toMatch(
        /^Version 1 is not told: .*no archive folder is configured here\. Which/,
      );
    }
  });

  it('says where it has looked for an event that nothing knows, and which groups still know a deleted one', async () => {
    const unknown = await timeline(fixture.deployment, eventId('01936f9e-7b1c-7cc1-a5c4-5a9c5f8f8d11'));
    expect(unknown).toMatchObject({
      kind: 'unknown',
      lookedIn: [expect.stringContaining(fixture.producer), expect.stringContaining(fixture.group)],
    });
    const [id] = await fixture.commit('1', 1);
    await fixture.publish([id!]);
    await fixture.settle([id!]);
    await fixture.client.db(fixture.producer).collection<{ _id: EventId }>('outbox').deleteOne({ _id: id! });
    const gone = await timeline(fixture.deployment, id!);
    expect(gone).toMatchObject({ kind: 'only-in-groups', groups: [{ verdict: { kind: 'settled' } }] });
  });

  it('says of a group whose database nobody names that it is not known', async () => {
    const [id] = await fixture.commit('1', 1);
    const found = await timeline({ ...fixture.deployment, groups: [] }, id!);
    expect(found).toMatchObject({ kind: 'known', groups: [{ group: fixture.group, database: null, verdict: null }] });
    expect(found.notKnown.join()).toContain(`Group ${fixture.group} is registered`);
  });
});

describe('the history of an aggregate', () => {
  it('has every version with what each group made of it, a page at a time', async () => {
    const ids = await fixture.commit('1', 5);
    await fixture.publish(ids.slice(0, 4));
    await fixture.settle(ids.slice(0, 2));
    await fixture.park(ids[2]!, 'dead');
    const first = await aggregateHistory(fixture.deployment, fixture.key('1'), { limit: 3 });
    expect(first).toMatchObject({
      headVersion: 5,
      next: 3,
      positions: { [fixture.group]: { version: 2, state: 'blocked' } },
    });
    const second = await aggregateHistory(fixture.deployment, fixture.key('1'), { limit: 3, afterVersion: 3 });
    expect(second.next).toBeNull();
    const entries = [...first.entries, ...second.entries];
    expect(entries.map(({ event }) => event?.eventId)).toEqual(ids);
    expect(entries.map(({ groups }) => groups[fixture.group])).toEqual([
      'applied',
      'applied',
      'parked: dead',
      'missing',
      'missing',
    ]);
  });
});

describe('a search', () => {
  it('finds by correlation, tenant, status and time, newest first, page by page to the end', async () => {
    const story = await fixture.commit('1', 3, { correlationId: 'story', tenantId: 'acme' });
    const other = await fixture.commit('2', 2, { correlationId: 'other', tenantId: 'acme' });
    await fixture.publish(story.slice(0, 1));
    const idsOf = async (request: Parameters<typeof search>[1]) =>
      (await search(fixture.deployment, request)).events.map((event) => event.eventId);
    expect(await idsOf({ correlationId: 'story' })).toEqual([...story].reverse());
    expect(await idsOf({ tenantId: 'acme' })).toEqual([...story, ...other].reverse());
    expect(await idsOf({ status: 'PUBLISHED' })).toEqual([story[0]]);
    expect(await idsOf({ from: new Date(Date.now() + 60_000) })).toEqual([]);
    expect(await idsOf({ from: new Date(Date.now() - 60_000), to: new Date(Date.now() + 60_000) })).toHaveLength(5);
    const pages: EventId[][] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof search>> = await search(fixture.deployment, {
        limit: 2,
        ...(cursor === null ? {} : { cursor }),
      });
      pages.push(page.events.map((event) => event.eventId));
      cursor = page.cursor;
    } while (cursor !== null && pages.length < 10);
    expect(pages).toEqual([[other[1], other[0]], [story[2], story[1]], [story[0]]]);
    await expect(search(fixture.deployment, { limit: 201 })).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
  });
});

describe('the status', () => {
  it('counts outboxes by status, groups with lag and parked messages, and tells leases and pauses', async () => {
    const ids = await fixture.commit('1', 3);
    const [dead] = await fixture.commit('2', 1);
    await fixture.publish(ids.slice(0, 2));
    await fixture.kill(dead!);
    await fixture.park(ids[0]!, 'dead');
    await fixture.park(ids[1]!, 'behind');
    await fixture.lease();
    await pauseRelay(fixture.client, fixture.relayDatabase, { topic: null, ...ada });
    const found = await status(fixture.deployment, fixture.client);
    expect(found.outboxes).toMatchObject([
      { producer: fixture.producer, unsettled: { PENDING: { rows: 1 }, DEAD: { rows: 1 } } },
    ]);
    expect(found.groups).toMatchObject([
      { group: fixture.group, parked: { dead: 1, behind: 1, retry: 0, setAside: 0 } },
    ]);
    expect(found.relay).toMatchObject({
      leases: [{ shard: 'all', isAlive: true, owner: 'relay-a' }],
      pauses: [{ _id: 'all', by: 'ada' }],
    });
    expect(found.notKnown).toEqual([]);
  });

  it('finds by itself where producers, groups and relay are', async () => {
    const [id] = await fixture.commit('1', 1);
    await fixture.publish([id!]);
    await fixture.settle([id!]);
    const found = await discoverDeployment(fixture.client, { relay: fixture.deployment.relay });
    expect(found.producers.map(({ database }) => database)).toContain(fixture.producer);
    expect(found.groups).toContainEqual(expect.objectContaining({ group: fixture.group, database: fixture.consumer }));
  });
});
