import { createHttpLedger, registerOverHttp, type HttpRegistration } from '@nightporter/ledger-http';
import {
  createStartPositions,
  endStart,
  ensureConsumerCollections,
  ensureOutboxCollections,
  type GroupDocument,
  type PositionDocument,
  type RegistryDocument,
} from '@nightporter/mongo';
import { aggregateKey, aggregateVersion, namespace } from '@nightporter/protocol';
import { afterEach, describe, expect, it } from 'vitest';
import { sharedDatabase } from '../conformance/mongo-database.js';
import { commitSamples } from '../conformance/mongo-samples.js';
import { serveLedger, type LedgerServer } from '../support/ledger-server.js';

const shared = sharedDatabase();
const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const resource of open.splice(0).reverse()) await resource.close();
});

const GROUP = 'points';
const TOPIC = 'sample-events';

async function remoteWorld() {
  const client = shared.client();
  const [producer, database] = [shared.database('orders'), shared.database('points')];
  await ensureOutboxCollections(client, producer);
  await ensureConsumerCollections(client, database);
  const server = await serveLedger(client, [producer]);
  open.push(server);
  const groups = client.db(producer).collection<GroupDocument>('groups');
  const positions = client.db(database).collection<PositionDocument>('positions');
  const start = createStartPositions({ client, database, group: GROUP });
  const place = { url: server.url, token: server.token, producer };
  const registration: HttpRegistration = {
    ...place,
    group: GROUP,
    topics: [TOPIC],
    from: 'now',
    unavailable: 'refuse',
    positions: start,
  };
  return {
    client,
    producer,
    database,
    server,
    place,
    start,
    register: (changes: Partial<HttpRegistration> = {}) => registerOverHttp({ ...registration, ...changes }),
    standing: () => groups.findOne({ _id: GROUP }),
    commit: (aggregates: readonly string[]) =>
      commitSamples(
        client,
        aggregates.map((aggregateId) => ({ aggregateId, namespace: namespace(`${producer}.outbox`) })),
      ),
    keyOf: (aggregateId: string) => aggregateKey({ source: producer, aggregateType: 'sample', aggregateId }),
    starts: async () => {
      const found = await positions.find({ group: GROUP }).sort({ aggregate: 1 }).toArray();
      return found.map(({ aggregate, startVersion, version }) => [aggregate, version, startVersion]);
    },
    deleteAll: async () => {
      await client.db(producer).collection('outbox').deleteMany({});
      const registry = client.db(producer).collection<RegistryDocument>('groups');
      const gone = { $set: { [`deletedTo.${TOPIC}`]: new Date() } };
      await registry.updateOne({ _id: 'registry' }, gone, { upsert: true });
    },
  };
}

describe('a group whose producer is out of reach', () => {
  it('starts now at the heads that the ops API tells, page by page, and is live', async () => {
    const world = await remoteWorld();
    const aggregates = Array.from({ length: 450 }, (_, index) => `a-${String(index).padStart(3, '0')}`);
    await world.commit([...aggregates, 'a-000', 'a-000']);
    await world.register();
    const starts = await world.starts();
    expect(starts).toHaveLength(450);
    expect(starts[0]).toEqual([world.keyOf('a-000'), 3, 3]);
    expect(starts.at(-1)).toEqual([world.keyOf('a-449'), 1, 1]);
    expect(await world.standing()).toMatchObject({ state: 'live', from: 'now', topics: [TOPIC] });
    expect(await world.standing()).not.toHaveProperty('copyingHeads');
  });

  it('is not moved by a member that is late with a page when the others have begun', async () => {
    const world = await remoteWorld();
    await world.commit(['a']);
    let key = '';
    const { start } = world;
    await world.register({ positions: { ...start, set: (given, page) => ((key = given), start.set(given, page)) } });
    const late = [{ aggregate: world.keyOf('b'), version: aggregateVersion(7) }];
    await start.set(key, late);
    expect(await world.starts()).toEqual([[world.keyOf('a'), 1, 1]]);
    await start.set(`${key}1`, late);
    expect(await world.starts()).toHaveLength(2);
  });

  it('has its start completed by the next member where one died in the middle', async () => {
    const world = await remoteWorld();
    await world.commit(['a', 'b']);
    const died = new Error('died');
    const dying = { ...world.start, finish: () => Promise.reject(died) };
    await expect(world.register({ positions: dying })).rejects.toBe(died);
    expect(await world.standing()).toMatchObject({ state: 'bootstrapping', copyingHeads: true });
    await world.commit(['a']);
    await world.register();
    // What was set stays: everything behind it will come.
    expect(await world.starts()).toEqual([
      [world.keyOf('a'), 1, 1],
      [world.keyOf('b'), 1, 1],
    ]);
    expect(await world.standing()).toMatchObject({ state: 'live' });
  });

  it('does not have another start of it ended by whoever is late with the end of one', async () => {
    const world = await remoteWorld();
    await world.commit(['a']);
    const died = new Error('died');
    const dying = { ...world.start, finish: () => Promise.reject(died) };
    await expect(world.register({ positions: dying })).rejects.toBe(died);
    const sinceMs = (await world.standing())!.floor.getTime();
    await endStart(world.client, world.producer, { group: GROUP, sinceMs: sinceMs - 1 });
    expect(await world.standing()).toMatchObject({ state: 'bootstrapping', copyingHeads: true });
    await endStart(world.client, world.producer, { group: GROUP, sinceMs });
    expect(await world.standing()).toMatchObject({ state: 'live' });
  });

  it('is refused a beginning that retention has deleted, with the code of the port, and gets what is left where that is accepted', async () => {
    const world = await remoteWorld();
    await world.commit(['a', 'a']);
    await world.deleteAll();
    const beginning = { from: 'beginning' } as const;
    await expect(world.register(beginning)).rejects.toMatchObject({ code: 'NP_GROUP_START_UNAVAILABLE' });
    expect(await world.standing()).toBeNull();
    await world.register({ ...beginning, unavailable: 'accept' });
    expect(await world.starts()).toEqual([[world.keyOf('a'), 2, 2]]);
    expect(await world.standing()).toMatchObject({ state: 'bootstrapping', from: 'beginning' });
  });

  it('is registered once, whoever asks again', async () => {
    const world = await remoteWorld();
    await Promise.all([world.register(), world.register(), world.register()]);
    const before = await world.standing();
    await world.register({ from: 'beginning' });
    expect(await world.standing()).toEqual(before);
  });

  it('says of a token that is refused, and of a producer that is unknown, what is accepted', async () => {
    const world = await remoteWorld();
    await expect(world.register({ token: 'another-token-of-somebody' })).rejects.toMatchObject({
      code: 'NP_CONFIG_INVALID',
      message: expect.stringContaining('401'),
    });
    await expect(world.register({ producer: 'elsewhere' })).rejects.toMatchObject({
      message: expect.stringContaining(`accepted: ${world.producer}`),
    });
    await expect(world.register({ url: 'ftp://127.0.0.1' })).rejects.toMatchObject({ code: 'NP_CONFIG_INVALID' });
  });

  it('finds the store unavailable where nobody answers, or something else does', async () => {
    const { place, server } = await remoteWorld();
    const ledger = createHttpLedger({ ...place, timeoutMs: 2_000 });
    const places = [
      { aggregate: aggregateKey({ source: 's', aggregateType: 't', aggregateId: 'i' }), version: aggregateVersion(1) },
    ];
    expect(await ledger.readVersions(places)).toEqual([{ kind: 'not-committed' }]);
    const elsewhere = createHttpLedger({ ...place, url: `${server.url}/elsewhere` });
    await expect(elsewhere.readVersions(places)).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    await closeNow(server);
    await expect(ledger.readVersions(places)).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
  });
});

async function closeNow(server: LedgerServer): Promise<void> {
  open.splice(open.indexOf(server), 1);
  await server.close();
}
