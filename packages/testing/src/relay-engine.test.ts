import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import {
  Barrier,
  commit,
  idOf,
  startRelay,
  statusOf,
  stopRelay,
  unavailable,
  type RelaySetup,
} from './relay-engine.support.js';

describe('what commits', () => {
  test('is published in the order of its aggregate, marked, and passed by the checkpoint', async () => {
    const relay = start();
    await world.clock.advance(100);
    commit(world, 'a', 'a', 'b', 'a');
    await world.clock.advance(1_000);
    expect(landed.filter((id) => id.startsWith('a/'))).toEqual(['a/1', 'a/2', 'a/3']);
    expect(landed).toContain('b/1');
    expect(statusOf(world, 'a', 3)).toBe('PUBLISHED');
    const checkpoint = world.database.checkpoints.documents.get('all');
    expect(world.database.outbox.oplog.rowsCoveredBy(checkpoint!.token!)).toHaveLength(4);
    expect(relay.shard()).toMatchObject({ state: 'following', sendsInFlight: 0, rowsInMemory: 0, tracked: 0 });
    expect(world.database.repairs.records).toEqual([]);
  });

  test('before the relay’s first start is found by its sweep', async () => {
    commit(world, 'a', 'b', 'a');
    start();
    await world.clock.advance(100);
    expect([...landed].sort()).toEqual(['a/1', 'a/2', 'b/1']);
  });

  test('and is deleted at once by a stray hand is still published', async () => {
    const relay = start();
    await world.clock.advance(100);
    commit(world, 'a');
    world.database.outbox.deleteRow(idOf('a', 1));
    await world.clock.advance(100);
    expect(landed).toEqual(['a/1']);
    expect(relay.shard().counts.missing).toBe(1);
  });

  test('is not sent again when the stream brings it after a sweep has', async () => {
    commit(world, 'a');
    const relay = start();
    await world.clock.advance(100);
    await stopRelay(world, relay);
    world.database.checkpoints.documents.clear();
    start({ owner: 'relay-2' });
    await world.clock.advance(65_000);
    expect(landed).toEqual(['a/1']);
  });

  test('was archived meanwhile: it is settled, not sent', async () => {
    const relay = start({ ports: ({ reader }) => ({ reader: { ...reader, lookUp: unavailable } }) });
    await world.clock.advance(1_000);
    commit(world, 'a');
    await world.clock.advance(1_000);
    const [row] = world.database.outbox.rows();
    world.database.outbox.mark([
      {
        ...row!,
        kind: 'published',
        relay: 'other',
        epoch: 1 as never,
        messageId: 'm',
        form: 'original',
        sinceCaptureMs: 0,
      },
    ]);
    world.database.outbox.retire(idOf('a', 1), 'archive');
    await stopRelay(world, relay);
    const second = start({ owner: 'relay-2' });
    await world.clock.advance(2_000);
    expect(landed).toEqual([]);
    expect(second.shard()).toMatchObject({ state: 'following', tracked: 0 });
  });
});

describe('work is shared', () => {
  test('neither sends, reads nor marks cost a call for each event', async () => {
    const relay = start();
    await world.clock.advance(100);
    const before = { ...relay.calls };
    for (let index = 0; index < 1_000; index += 1) commit(world, `order-${index % 50}`);
    await world.clock.advance(2_000);
    expect(landed).toHaveLength(1_000);
    const cost = (name: string): number => (relay.calls[name] ?? 0) - (before[name] ?? 0);
    expect(cost('publish')).toBe(1_000);
    expect(cost('mark') + cost('lookUp') + cost('readLanes') + cost('readUnsettled') + cost('save')).toBeLessThan(60);
  });

  test('an idle relay keeps quiet', async () => {
    const relay = start();
    await world.clock.advance(600_000);
    expect(relay.calls['acquire']).toBeLessThanOrEqual(125);
    expect(relay.calls['readUnsettled']).toBeLessThanOrEqual(64 * 11);
    expect(relay.calls['save'] ?? 0).toBeLessThanOrEqual(61);
    expect((relay.calls['mark'] ?? 0) + (relay.calls['lookUp'] ?? 0) + (relay.calls['readLanes'] ?? 0)).toBe(0);
  });

  test('memory and sends in flight stay bounded while the broker does not answer', async () => {
    const barrier = new Barrier();
    const relay = start({
      options: { windowMax: 16, bufferMax: 64, sweepPageMax: 20, sendMs: 600_000, leaseMs: 900_000 },
      ports: ({ publisher }) => ({
        publisher: {
          publish: async (request) => {
            await barrier.pass();
            return await publisher.publish(request);
          },
        },
      }),
    });
    barrier.closed = true;
    for (let index = 0; index < 2_000; index += 1) commit(world, `order-${index}`);
    await world.clock.advance(10_000);
    expect(relay.shard().sendsInFlight).toBe(16);
    expect(relay.shard().rowsInMemory).toBeLessThanOrEqual(64 + 20);
    barrier.open();
    await world.clock.advance(60_000);
    expect(new Set(landed).size).toBe(2_000);
  });
});

test('two shards hold their leases apart, and each sends its own slots only', async () => {
  const aggregates = Array.from({ length: 40 }, (_, index) => `order-${index}`);
  const halves = [0, 1].map((half) => Array.from({ length: 32 }, (_, index) => (half * 32 + index) as never));
  const options = { shards: halves.map((slots, half) => ({ id: `half-${half}`, slots })) };
  const relay = start({ options });
  await world.clock.advance(100);
  commit(world, ...aggregates);
  await world.clock.advance(1_000);
  expect(new Set(landed).size).toBe(40);
  expect(landed).toHaveLength(40);
  expect(relay.relay.snapshot().shards.map((shard) => shard.state)).toEqual(['following', 'following']);
});

test('options out of range are refused by name', () => {
  const create = (options: RelaySetup['options']) => () => startRelay(world, { options: options ?? {} });
  expect(create({ windowMax: 0 })).toThrow(/windowMax is 0; accepted: an integer of 1 or more/);
  expect(create({ shards: [] })).toThrow(/shards is \[\]; accepted: at least one shard/);
  expect(() => startRelay(world, { owner: '' })).toThrow(/owner/);
});
