import { describe, expect, test } from 'vitest';
import { landed, relays, start, world } from './relay-engine.fixture.js';
import { Barrier, commit, statusOf, stopRelay, unavailable } from './relay-engine.support.js';

describe('the lease', () => {
  test('goes to a standby at once when its holder stops', async () => {
    const first = start();
    await world.clock.advance(100);
    const second = start({ owner: 'relay-2' });
    await world.clock.advance(100);
    expect(second.shard().state).toBe('standby');
    const stopped = first.relay.stop();
    await world.clock.advance(1_100);
    await stopped;
    expect(second.shard()).toMatchObject({ state: 'following', epoch: 2 });
    expect(first.shard().state).toBe('stopped');
  });

  test('that is acquired while its holder stops goes to a standby at once', async () => {
    const barrier = new Barrier();
    barrier.closed = true;
    const first = start({
      ports: ({ leases }) => ({
        leases: {
          ...leases,
          acquire: async (request) => {
            const outcome = await leases.acquire(request);
            await barrier.pass();
            return outcome;
          },
        },
      }),
    });
    await world.clock.advance(100);
    const second = start({ owner: 'relay-2' });
    await world.clock.advance(100);
    expect(second.shard().state).toBe('standby');
    const stopped = first.relay.stop();
    barrier.open();
    await world.clock.advance(1_100);
    await stopped;
    expect(second.shard()).toMatchObject({ state: 'following', epoch: 2 });
  });

  test('of the next epoch goes to a standby at once when its holder stops before it serves', async () => {
    let cut = false;
    const barrier = new Barrier();
    const first = start({
      ports: ({ capture, leases }) => ({
        capture: {
          open: async (request) => {
            const stream = await capture.open(request);
            return { ...stream, close: () => barrier.pass() };
          },
        },
        leases: { ...leases, acquire: (request) => (cut ? unavailable() : leases.acquire(request)) },
      }),
    });
    await world.clock.advance(100);
    cut = true;
    await world.clock.advance(30_000);
    cut = false;
    barrier.closed = true;
    for (let step = 0; step < 100 && first.shard().state !== 'draining'; step += 1) await world.clock.advance(50);
    expect(first.shard()).toMatchObject({ state: 'draining', epoch: 1 });
    const second = start({ owner: 'relay-2' });
    await world.clock.advance(100);
    expect(second.shard().state).toBe('standby');
    const stopped = first.relay.stop();
    barrier.open();
    await world.clock.advance(1_100);
    await stopped;
    expect(second.shard()).toMatchObject({ state: 'following', epoch: 3 });
  });

  test('that cannot be renewed ends the sending in time, and the standby takes over', async () => {
    let cut = false;
    const first = start({
      ports: ({ leases }) => ({
        leases: { ...leases, acquire: (request) => (cut ? unavailable() : leases.acquire(request)) },
      }),
    });
    await world.clock.advance(100);
    cut = true;
    await world.clock.advance(14_000);
    expect(first.shard().state).toBe('suspended');
    const sent = first.calls['publish'] ?? 0;
    commit(world, 'a');
    await world.clock.advance(500);
    expect(first.calls['publish'] ?? 0).toBe(sent);
    start({ owner: 'relay-2' });
    await world.clock.advance(2_000);
    expect(landed).toEqual(['a/1']);
    cut = false;
    await world.clock.advance(5_000);
    expect(first.shard().state).toBe('standby');
    expect(landed).toEqual(['a/1']);
  });

  test('renewed late, in the same epoch, takes the session up again', async () => {
    let cut = false;
    const relay = start({
      options: { leaseMs: 3_000, sendMs: 2_000 },
      ports: ({ leases }) => ({
        leases: { ...leases, acquire: (request) => (cut ? unavailable() : leases.acquire(request)) },
      }),
    });
    await world.clock.advance(100);
    cut = true;
    await world.clock.advance(2_750);
    expect(relay.shard().state).toBe('suspended');
    commit(world, 'a');
    await world.clock.advance(20);
    expect(landed).toEqual([]);
    world.database.leases.acquire({ shard: 'all', owner: 'relay-1', durationMs: 60_000 });
    cut = false;
    await world.clock.advance(2_000);
    expect(landed).toEqual(['a/1']);
    expect(relay.shard()).toMatchObject({ state: 'following', epoch: 1 });
  });

  test('is asked for again when a renewal hangs, long before it ends', async () => {
    const barrier = new Barrier();
    const relay = start({
      ports: ({ leases }) => ({
        leases: {
          ...leases,
          acquire: async (request) => {
            await barrier.pass();
            return await leases.acquire(request);
          },
        },
      }),
    });
    await world.clock.advance(100);
    barrier.closed = true;
    await world.clock.advance(6_000);
    barrier.closed = false;
    await world.clock.advance(30_000);
    expect(relay.shard()).toMatchObject({ state: 'following', epoch: 1 });
    expect(relay.eventsOf('lease-acquired')).toHaveLength(1);
  });

  test('of a relay that slept through it is in a new epoch, and a new session begins', async () => {
    let cut = false;
    const relay = start({
      ports: ({ leases }) => ({
        leases: { ...leases, acquire: (request) => (cut ? unavailable() : leases.acquire(request)) },
      }),
    });
    await world.clock.advance(100);
    cut = true;
    await world.clock.advance(30_000);
    cut = false;
    commit(world, 'a');
    await world.clock.advance(5_000);
    expect(relay.shard()).toMatchObject({ state: 'following', epoch: 2 });
    expect(landed).toEqual(['a/1']);
  });

  test('does not help a relay whose checkpoint was claimed by a later epoch', async () => {
    const relay = start();
    await world.clock.advance(100);
    world.database.checkpoints.claim({ shard: 'all', epoch: 9 as never });
    commit(world, 'a');
    await world.clock.advance(1_000);
    expect(relay.eventsOf('lease-lost')).toMatchObject([{ reason: 'fenced' }]);
    expect(world.database.checkpoints.documents.get('all')).toMatchObject({ epoch: 9, seq: 0 });
  });
});

describe('stop()', () => {
  test('marks what was sent and saves the checkpoint, so that the next owner sends nothing again', async () => {
    const first = start();
    await world.clock.advance(100);
    for (let index = 0; index < 300; index += 1) commit(world, `order-${index % 7}`);
    await world.clock.advance(4);
    await stopRelay(world, first);
    const checkpoint = world.database.checkpoints.documents.get('all');
    for (const row of world.database.outbox.oplog.rowsCoveredBy(checkpoint!.token!)) {
      expect(statusOf(world, row.aggregateId, row.aggregateVersion)).toBe('PUBLISHED');
    }
    start({ owner: 'relay-2' });
    await world.clock.advance(2_000);
    expect(landed).toHaveLength(300);
    expect(new Set(landed).size).toBe(300);
  });

  test('waits for sends in flight, and no longer than drainMs', async () => {
    const barrier = new Barrier();
    const relay = start({
      options: { drainMs: 3_000 },
      ports: ({ publisher }) => ({
        publisher: {
          publish: async (request) => {
            await barrier.pass();
            return await publisher.publish(request);
          },
        },
      }),
    });
    await world.clock.advance(100);
    barrier.closed = true;
    commit(world, 'a');
    await world.clock.advance(10);
    let isStopped = false;
    const stopped = relay.relay.stop().then(() => (isStopped = true));
    await world.clock.advance(2_900);
    expect([isStopped, relay.shard().state]).toEqual([false, 'draining']);
    await world.clock.advance(200);
    await stopped;
    expect(relay.shard().state).toBe('stopped');
  });

  test('ends in its time although the stream and the lease cannot be given back', async () => {
    const hanging = (): Promise<void> => new Promise(() => undefined);
    const relay = start({
      options: { drainMs: 3_000 },
      ports: ({ capture, leases }) => ({
        capture: {
          open: async (request) => {
            const stream = await capture.open(request);
            return { read: () => stream.read(), close: hanging };
          },
        },
        leases: { acquire: (request) => leases.acquire(request), release: hanging },
      }),
    });
    await world.clock.advance(100);
    let isStopped = false;
    const stopped = relay.relay.stop().then(() => (isStopped = true));
    await world.clock.advance(1_100);
    expect(isStopped).toBe(false);
    await world.clock.advance(200);
    await stopped;
    expect(relay.shard().state).toBe('stopped');
  });

  test('does not wait for a renewal that hangs before it drains, nor for ever after', async () => {
    const barrier = new Barrier();
    const relay = start({
      ports: ({ leases }) => ({
        leases: {
          ...leases,
          acquire: async (request) => {
            await barrier.pass();
            return await leases.acquire(request);
          },
        },
      }),
    });
    await world.clock.advance(100);
    barrier.closed = true;
    await world.clock.advance(5_500);
    const stopped = relay.relay.stop();
    await world.clock.advance(500);
    await stopped;
    expect(relay.shard().state).toBe('stopped');
    start({ owner: 'relay-2' });
    await world.clock.advance(100);
    expect(relays.at(-1)?.shard().state).toBe('following');
  });

  test('before run() has done anything, twice, and while the database is gone, ends it all the same', async () => {
    const idle = start({ owner: 'relay-2' });
    await Promise.all([idle.relay.stop(), idle.relay.stop()]);
    const cutOff = start({
      ports: () => ({ leases: { acquire: unavailable, release: unavailable } }),
    });
    await world.clock.advance(5_000);
    await stopRelay(world, cutOff);
    expect(cutOff.shard().state).toBe('stopped');
  });
});
