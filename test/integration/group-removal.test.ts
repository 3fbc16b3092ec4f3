import { removeGroup } from '@nightporter/ledger';
import {
  createGroupRegistry,
  ensureConsumerCollections,
  ensureOutboxCollections,
  registerGroup,
  type GroupDocument,
  type OperatorActionDocument,
  type RegistryDocument,
} from '@nightporter/mongo';
import { describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';

const shared = sharedDatabase();
const decision = { by: 'ops', reason: 'no longer needed' };

describe('removing a group', () => {
  it('takes it out of every producer, on record, and leaves what it knows', async () => {
    const { client, producers, dataIn, groupsIn, registryOf, documentsOf } = await world();
    const before = await registryOf(producers[0]);
    const result = await removeGroup({ client, group: 'points', producers, ...decision });
    expect(result).toEqual({
      unregistered: producers,
      deleted: { started: 0, starts: 0, parked: 0, copies: 0, inbox: 0, positions: 0 },
    });
    for (const producer of producers) {
      expect(await groupsIn(producer)).toEqual(['stock']);
      const actions = client.db(producer).collection<OperatorActionDocument>('operator_actions');
      const details = { topics: 'orders-events', state: 'bootstrapping', dataIn: null };
      expect(await actions.find().toArray()).toMatchObject([
        { action: 'remove-group', target: 'points', ...decision, details },
      ]);
    }
    expect(await registryOf(producers[0])).toBe(before + 1);
    expect(await documentsOf('points')).toBe(470);
    expect(dataIn).not.toBe('');
  });

  it('deletes what it knows only where that is asked for, in batches with progress, and nothing of another group', async () => {
    const { client, producers, dataIn, documentsOf } = await world();
    const steps: number[] = [];
    const progress = (deleted: Readonly<Record<string, number>>): void => {
      steps.push(Object.values(deleted).reduce((sum, count) => sum + count, 0));
    };
    const result = await removeGroup({ client, group: 'points', producers, dataIn, progress, ...decision });
    expect(result.deleted).toEqual({ started: 0, starts: 0, parked: 10, copies: 0, inbox: 250, positions: 210 });
    expect(steps.at(-1)).toBe(470);
    expect(steps).toHaveLength(5);
    expect(await documentsOf('points')).toBe(0);
    expect(await documentsOf('stock')).toBe(470);
    const again = await removeGroup({ client, group: 'points', producers, dataIn, ...decision });
    expect(again).toEqual({
      unregistered: [],
      deleted: { started: 0, starts: 0, parked: 0, copies: 0, inbox: 0, positions: 0 },
    });
  });

  it('is refused while a member holds its sweep, with nothing changed', async () => {
    const { client, producers, dataIn, groupsIn, documentsOf } = await world();
    const registry = createGroupRegistry({ client, database: producers[0], group: 'points' });
    await registry.claim({ owner: 'points-1', durationMs: 60_000 });
    const refused = removeGroup({ client, group: 'points', producers, dataIn, ...decision });
    await expect(refused).rejects.toMatchObject({
      code: 'NP_ACTION_INVALID',
      message: expect.stringContaining('points-1'),
    });
    expect(await groupsIn(producers[0])).toEqual(['points', 'stock']);
    expect(await documentsOf('points')).toBe(470);
    await registry.release('points-1');
    expect((await removeGroup({ client, group: 'points', producers, ...decision })).unregistered).toEqual(producers);
  });

  it.each([
    ['who does not say who he is', { by: ' ', reason: 'x' }],
    ['who names no producers', { ...decision, producers: [] }],
    ['who names the registry', { ...decision, group: 'registry' }],
  ])('is refused to one %s', async (_name, given) => {
    const { client, producers } = await world();
    const refused = removeGroup({ client, group: 'points', producers, ...given });
    await expect(refused).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
  });
});

/** Two groups, registered with two producers, that know of something each. */
async function world() {
  const client = shared.client();
  const producers = [shared.database('orders'), shared.database('stock')] as const;
  const dataIn = shared.database('points');
  await ensureConsumerCollections(client, dataIn);
  for (const producer of producers) {
    await ensureOutboxCollections(client, producer);
    for (const group of ['points', 'stock'])
      await registerGroup(client, producer, { group, topics: ['orders-events'] });
  }
  const counts = { parked: 10, inbox: 250, positions: 210 };
  for (const [name, count] of Object.entries(counts)) {
    for (const group of ['points', 'stock']) {
      const ids = Array.from({ length: count }, (_, index) => `${group}|${index}`);
      await client
        .db(dataIn)
        .collection<{ _id: string; group: string; eventId: string }>(name)
        .insertMany(ids.map((_id) => ({ _id, group, eventId: _id })));
    }
  }
  return {
    client,
    producers,
    dataIn,
    groupsIn: async (producer: string): Promise<string[]> => {
      const found = await client
        .db(producer)
        .collection<GroupDocument>('groups')
        .find({ _id: { $ne: 'registry' } })
        .toArray();
      return found.map(({ _id }) => _id).sort();
    },
    registryOf: async (producer: string): Promise<number> => {
      const found = await client.db(producer).collection<RegistryDocument>('groups').findOne({ _id: 'registry' });
      return found?.revision ?? 0;
    },
    documentsOf: async (group: string): Promise<number> => {
      let count = 0;
      for (const name of Object.keys(counts))
        count += await client.db(dataIn).collection(name).countDocuments({ group });
      return count;
    },
  };
}
