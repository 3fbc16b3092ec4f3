import {
  ensureConsumerCollections,
  ensureOutboxCollections,
  registerGroup,
  type GroupDocument,
  type PositionDocument,
  type RegistryDocument,
} from '@nightporter/mongo';
import type { OutboxHeadDocument } from '@nightporter/contracts';
import { aggregateKey, aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { Document } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';

const shared = sharedDatabase();

function positionAt(group: string, aggregate: string, version: number): PositionDocument {
  const _id = `${group}|${aggregate}`;
  return {
    _id,
    group,
    aggregate: aggregate as AggregateKey,
    version,
    startVersion: version,
    state: 'open',
    revision: 1,
  };
}

async function registryOf() {
  const client = shared.client();
  const name = shared.database('orders');
  await ensureOutboxCollections(client, name);
  const groups = client.db(name).collection<GroupDocument>('groups');
  const heads = client.db(name).collection<OutboxHeadDocument>('outbox_heads');
  const database = shared.database('points');
  await ensureConsumerCollections(client, database);
  const positions = client.db(database).collection<PositionDocument>('positions');
  return {
    register: (registration: Parameters<typeof registerGroup>[2]) => registerGroup(client, name, registration),
    groupNamed: (group: string) => groups.findOne({ _id: group }),
    database,
    positions,
    moveWatermark: async (group: string) => {
      const watermark = new Date();
      await groups.updateOne({ _id: group }, { $set: { watermark, state: 'live' } });
      return watermark;
    },
    writeHeads: async (count: number) => {
      const head = { version: aggregateVersion(3), eventKey: 'key' };
      const update = { $setOnInsert: head };
      const ids = Array.from({ length: count }, (_, index) => `a-${index}`);
      await heads.bulkWrite(ids.map((_id) => ({ updateOne: { filter: { _id }, update, upsert: true } })));
    },
    /** As retention leaves an aggregate of which it has deleted everything below `from`. */
    writeAggregate: async (aggregateId: string, { from, to }: { from: number; to: number }) => {
      const identity = { source: 'orders', aggregateType: 'order', aggregateId };
      await heads.insertOne({ _id: aggregateKey(identity), version: aggregateVersion(to), eventKey: aggregateId });
      const rows = client.db(name).collection<Document & { _id: string }>('outbox');
      for (let version = from; version <= to; version += 1) {
        const row = { ...identity, aggregateVersion: version, status: 'PENDING' };
        await rows.insertOne({ _id: `${aggregateId}-${version}`, ...row });
      }
    },
    deleteTo: async (topic: string) => {
      const registry = client.db(name).collection<RegistryDocument>('groups');
      const update = { $set: { [`deletedTo.${topic}`]: new Date() } };
      await registry.updateOne({ _id: 'registry' }, update, { upsert: true });
    },
    /** As if its first member had died before it had set any position. */
    interruptStart: async (group: string) => {
      await positions.deleteMany({});
      await groups.updateOne({ _id: group }, { $set: { state: 'bootstrapping', copyingHeads: true } });
    },
    registry: async () => {
      const found = await client.db(name).collection<RegistryDocument>('groups').findOne({ _id: 'registry' });
      return found?.revision ?? 0;
    },
  };
}

describe('registering a group', () => {
  it('keeps what is there, takes new topics, and raises the registry only when something changes', async () => {
    const { register, groupNamed, registry } = await registryOf();
    await register({ group: 'points', topics: ['orders-events'] });
    const first = await groupNamed('points');
    expect(first).toMatchObject({ topics: ['orders-events'], from: 'beginning', state: 'bootstrapping' });
    expect(first?.watermark).toEqual(new Date(0));
    expect(Math.abs(first!.floor.getTime() - Date.now())).toBeLessThan(60_000);
    expect(await registry()).toBe(1);
    await register({ group: 'points', topics: ['orders-events'] });
    expect(await groupNamed('points')).toEqual(first);
    expect(await registry()).toBe(1);
    await register({ group: 'points', topics: ['inventory-events', 'orders-events'] });
    const second = await groupNamed('points');
    expect(second).toMatchObject({ topics: ['inventory-events', 'orders-events'], registeredAt: first?.registeredAt });
    expect(await registry()).toBe(2);
  });

  it('sends the watermark of a group back to its start when topics are added, and leaves it when they go', async () => {
    const { register, groupNamed, moveWatermark } = await registryOf();
    await register({ group: 'points', topics: ['orders-events', 'inventory-events'] });
    const watermark = await moveWatermark('points');
    const removed = await register({ group: 'points', topics: ['orders-events'] });
    expect(await groupNamed('points')).toMatchObject({ watermark, state: 'live' });
    expect(removed).toEqual({ topicsRemoved: ['inventory-events'] });
    const added = await register({ group: 'points', topics: ['orders-events', 'returns-events'] });
    expect(added).toEqual({ topicsRemoved: [] });
    expect(await groupNamed('points')).toMatchObject({ watermark: new Date(0), state: 'bootstrapping' });
  });

  it('makes a group that starts now live at once, at the heads, and no position that is there is touched', async () => {
    const { register, groupNamed, database, writeHeads, positions } = await registryOf();
    await writeHeads(450);
    await positions.insertOne({ ...positionAt('points', 'a-100', 7), startVersion: 0 });
    await register({ group: 'points', topics: ['orders-events'], from: 'now', database });
    const group = await groupNamed('points');
    expect(group?.state).toBe('live');
    expect(group?.watermark).toEqual(group?.floor);
    expect(await positions.countDocuments({ group: 'points', startVersion: 3, version: 3, state: 'open' })).toBe(449);
    expect(await positions.findOne({ _id: 'points|a-100' })).toMatchObject({ version: 7, startVersion: 0 });
  });

  it('moves no start any more once the group is live: what has begun since is read whole', async () => {
    const { register, database, writeHeads, positions } = await registryOf();
    await writeHeads(10);
    await Promise.all(
      [1, 2, 3].map(() => register({ group: 'points', topics: ['orders-events'], from: 'now', database })),
    );
    await writeHeads(20);
    await register({ group: 'points', topics: ['orders-events'], from: 'now', database });
    expect(await positions.countDocuments()).toBe(10);
  });

  it('completes a start that a crash has interrupted', async () => {
    const { register, groupNamed, database, writeHeads, positions, interruptStart } = await registryOf();
    await writeHeads(10);
    await register({ group: 'points', topics: ['orders-events'], from: 'now', database });
    await interruptStart('points');
    await register({ group: 'points', topics: ['orders-events'], from: 'now', database });
    expect(await positions.countDocuments()).toBe(10);
    expect((await groupNamed('points'))?.state).toBe('live');
  });

  it('completes it as it was begun, whatever is configured now', async () => {
    const { register, groupNamed, database, writeAggregate, positions, interruptStart } = await registryOf();
    // Whole: a start behind what is deleted would set no position here.
    await writeAggregate('whole', { from: 1, to: 3 });
    await register({ group: 'points', topics: ['orders-events'], from: 'now', database });
    await interruptStart('points');
    await register({ group: 'points', topics: ['orders-events'], from: 'beginning', database, unavailable: 'accept' });
    expect(await positions.find().toArray()).toMatchObject([{ version: 3, startVersion: 3 }]);
    expect(await groupNamed('points')).toMatchObject({ from: 'now', state: 'live' });
  });

  describe('from the beginning, where retention has deleted events', () => {
    const topics = ['orders-events'];

    it('is refused with what is gone and what may be passed, and nothing is written', async () => {
      const { register, groupNamed, registry, deleteTo, writeAggregate } = await registryOf();
      await writeAggregate('whole', { from: 1, to: 3 });
      await writeAggregate('cut', { from: 4, to: 6 });
      await deleteTo('orders-events');
      const before = await registry();
      await expect(register({ group: 'points', topics })).rejects.toMatchObject({
        code: 'NP_GROUP_START_UNAVAILABLE',
        message: expect.stringMatching(/of the first 2 aggregates 1 lack versions, such as .*cut up to 3.*'accept'/),
      });
      expect(await groupNamed('points')).toBeNull();
      expect(await registry()).toBe(before);
    });

    it('starts each aggregate with the first version that is left where that is accepted, and says so', async () => {
      const { register, groupNamed, database, deleteTo, positions, writeAggregate } = await registryOf();
      await writeAggregate('whole', { from: 1, to: 3 });
      await writeAggregate('cut', { from: 4, to: 6 });
      await writeAggregate('gone', { from: 8, to: 7 });
      await deleteTo('orders-events');
      await register({ group: 'points', topics, database, unavailable: 'accept' });
      const group = await groupNamed('points');
      expect(group).toMatchObject({ state: 'bootstrapping', from: 'beginning', watermark: new Date(0) });
      expect(group).not.toHaveProperty('copyingHeads');
      const found = await positions.find().sort({ _id: 1 }).toArray();
      const unavailable = { startReason: 'unavailable', state: 'open' };
      expect(found).toMatchObject([
        { aggregate: expect.stringMatching(/cut$/), version: 3, startVersion: 3, ...unavailable },
        { aggregate: expect.stringMatching(/gone$/), version: 7, startVersion: 7, ...unavailable },
      ]);
    });

    it('minds neither what is gone of topics that the group does not read, nor a group that starts now', async () => {
      const { register, groupNamed, database, deleteTo } = await registryOf();
      await deleteTo('orders-events');
      await register({ group: 'other', topics: ['returns-events'] });
      await register({ group: 'new', topics, from: 'now', database });
      expect(await groupNamed('other')).not.toBeNull();
      expect((await groupNamed('new'))?.state).toBe('live');
    });

    it('minds what is gone of a topic that is added later', async () => {
      const { register, groupNamed, deleteTo } = await registryOf();
      await register({ group: 'points', topics: ['returns-events'] });
      await deleteTo('orders-events');
      const added = register({ group: 'points', topics: ['returns-events', 'orders-events'] });
      await expect(added).rejects.toMatchObject({ code: 'NP_GROUP_START_UNAVAILABLE' });
      expect(await groupNamed('points')).toMatchObject({ topics: ['returns-events'] });
    });
  });

  describe('that started now, and to which a topic is added', () => {
    const [old, added] = [['returns-events'], ['returns-events', 'orders-events']];

    it('is refused where retention has deleted events of it that were published since, whatever is accepted', async () => {
      const { register, groupNamed, database, deleteTo, registry } = await registryOf();
      await register({ group: 'points', topics: old, from: 'now', database });
      await deleteTo('orders-events');
      const before = await registry();
      for (const start of [{ from: 'now' }, { from: 'beginning', unavailable: 'accept' }] as const) {
        await expect(register({ group: 'points', topics: added, database, ...start })).rejects.toMatchObject({
          code: 'NP_GROUP_START_UNAVAILABLE',
          message: expect.stringMatching(/points reads what was published since .*orders-events.*Accepted: .*@2/),
        });
      }
      expect(await groupNamed('points')).toMatchObject({ topics: old, state: 'live' });
      expect(await registry()).toBe(before);
    });

    it('minds nothing that was deleted before it came', async () => {
      const { register, groupNamed, database, deleteTo } = await registryOf();
      await deleteTo('orders-events');
      await register({ group: 'points', topics: old, from: 'now', database });
      await register({ group: 'points', topics: added, from: 'now', database });
      expect((await groupNamed('points'))?.topics).toEqual([...added].sort());
    });
  });

  it('needs no collection to be there', async () => {
    const database = shared.database('orders');
    await registerGroup(shared.client(), database, { group: 'points', topics: ['orders-events'] });
    expect(await shared.client().db(database).collection('groups').countDocuments()).toBe(2);
  });

  it('lets many register at once, each counted', async () => {
    const { register, registry } = await registryOf();
    const names = ['a', 'b', 'c', 'd', 'e'];
    await Promise.all(names.map((group) => register({ group, topics: ['orders-events'] })));
    expect(await registry()).toBe(names.length);
  });

  it.each([
    ['the name of the registry', { group: 'registry', topics: ['orders-events'] }],
    ['no name', { group: '', topics: ['orders-events'] }],
    ['no topic', { group: 'points', topics: [] }],
  ])('refuses %s', async (_name, registration) => {
    const { register } = await registryOf();
    await expect(register(registration)).rejects.toMatchObject({ code: 'NP_CONFIG_INVALID' });
  });
});
