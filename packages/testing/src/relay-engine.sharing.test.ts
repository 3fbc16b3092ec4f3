import { shardsOf } from '@nightporter/relay';
import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import {
  Barrier,
  commit,
  stopRelay,
  unavailable,
  type RelaySetup,
  type RelayUnderTest,
} from './relay-engine.support.js';

const FOUR = { shards: shardsOf(4), sharesShards: true };

function share(owner: string, setup: RelaySetup = {}): RelayUnderTest {
  return start({ ...setup, owner, options: { ...FOUR, ...setup.options } });
}

/** Ids of the shards that each of them serves. */
function servedBy(...relays: readonly RelayUnderTest[]): string[][] {
  return relays.map(({ relay }) =>
    relay
      .snapshot()
      .shards.filter(({ epoch }) => epoch !== null)
      .map(({ shard }) => shard),
  );
}

const countsOf = (...relays: readonly RelayUnderTest[]): number[] => servedBy(...relays).map((ids) => ids.length);

describe('sharing out', () => {
  test('gives one instance everything, and those that join their part of it', async () => {
    const first = share('a');
    await world.clock.advance(1_000);
    expect(countsOf(first)).toEqual([4]);
    const second = share('b');
    await world.clock.advance(4_000);
    expect(countsOf(first, second)).toEqual([2, 2]);
    const third = share('c');
    await world.clock.advance(4_000);
    expect(countsOf(first, second, third)).toEqual([2, 1, 1]);
    expect(new Set(servedBy(first, second, third).flat()).size).toBe(4);
    expect(third.relay.snapshot().sharing).toMatchObject({ instances: 3, share: 1, held: 1 });
  });

  test('moves nothing while nobody joins or leaves', async () => {
    const three = [share('a'), share('b'), share('c')];
    await world.clock.advance(6_000);
    const before = servedBy(...three);
    const acquired = three.map((relay) => relay.eventsOf('lease-acquired').length);
    await world.clock.advance(60_000);
    expect(servedBy(...three)).toEqual(before);
    expect(three.map((relay) => relay.eventsOf('lease-acquired').length)).toEqual(acquired);
  });

  test('hands the shards of one that stops to the others within two seconds', async () => {
    const two = [share('a'), share('b')] as const;
    await world.clock.advance(6_000);
    const stopped = two[0].relay.stop();
    await world.clock.advance(2_500);
    await stopped;
    expect(countsOf(two[1])).toEqual([4]);
  });

  test('hands the shards of one that dies to the others once its leases have run out', async () => {
    let isDead = false;
    const dying = share('a', {
      ports: ({ leases, instances }) => ({
        leases: { ...leases, acquire: (request) => (isDead ? unavailable() : leases.acquire(request)) },
        instances: { ...instances, announce: (request) => (isDead ? unavailable() : instances.announce(request)) },
      }),
    });
    const other = share('b');
    await world.clock.advance(6_000);
    expect(countsOf(dying, other)).toEqual([2, 2]);
    isDead = true;
    await world.clock.advance(20_000);
    expect(countsOf(other)).toEqual([4]);
  });

  test('keeps a shard until the last send in flight has ended', async () => {
    const barrier = new Barrier();
    const first = share('a', {
      options: { drainMs: 500 },
      ports: ({ publisher }) => ({
        publisher: {
          async publish(request) {
            await barrier.pass();
            return await publisher.publish(request);
          },
        },
      }),
    });
    await world.clock.advance(1_000);
    barrier.closed = true;
    for (let index = 0; index < 32; index += 1) commit(world, `order-${index}`);
    await world.clock.advance(10);
    const second = share('b');
    await world.clock.advance(4_000);
    expect(countsOf(first, second)).toEqual([4, 0]);
    barrier.open();
    await world.clock.advance(4_000);
    expect(countsOf(first, second)).toEqual([2, 2]);
    expect(landed).toHaveLength(32);
  });

  test('publishes everything once, while instances join and leave', async () => {
    const first = share('b');
    let count = 0;
    const load = async (forMs: number): Promise<void> => {
      for (let passedMs = 0; passedMs < forMs; passedMs += 100) {
        commit(world, `order-${count++ % 40}`);
        await world.clock.advance(100);
      }
    };
    await load(2_000);
    const second = share('a');
    await load(5_000);
    const stopped = first.relay.stop();
    await load(5_000);
    await stopped;
    share('c');
    await load(5_000);
    await stopRelay(world, second);
    await world.clock.advance(5_000);
    expect(landed).toHaveLength(count);
    expect(new Set(landed).size).toBe(count);
  });

  test('takes nothing over while it is unknown who lives, and keeps what it has', async () => {
    let cut = false;
    const cutOff = share('a', {
      ports: ({ instances }) => ({
        instances: { ...instances, announce: (request) => (cut ? unavailable() : instances.announce(request)) },
      }),
    });
    const other = share('b');
    await world.clock.advance(6_000);
    cut = true;
    await world.clock.advance(20_000);
    expect(countsOf(cutOff)).toEqual([2]);
    expect(cutOff.relay.snapshot().sharing).toMatchObject({ share: null, held: 2 });
    await stopRelay(world, other);
    expect(countsOf(cutOff)).toEqual([2]);
    cut = false;
    await world.clock.advance(3_000);
    expect(countsOf(cutOff)).toEqual([4]);
  });
});

describe('another division of the slots', () => {
  test('waits, and says so, until no lease of the first is left; then it is served', async () => {
    const first = share('a', { options: { shards: shardsOf(1) } });
    await world.clock.advance(1_000);
    const second = share('b');
    await world.clock.advance(30_000);
    expect(countsOf(first, second)).toEqual([1, 0]);
    expect(second.shard()).toMatchObject({ state: 'standby', otherMap: 'shard all is held by a' });
    expect(second.calls['acquire']).toBeUndefined();
    const stopped = first.relay.stop();
    await world.clock.advance(3_000);
    await stopped;
    expect(countsOf(second)).toEqual([4]);
    expect(second.shard().otherMap).toBeNull();
  });

  test('has no part in the first while it waits, and takes all of its own afterwards', async () => {
    const first = share('b', { options: { shards: shardsOf(3) } });
    await world.clock.advance(1_000);
    const others = [share('a'), share('c')] as const;
    await world.clock.advance(20_000);
    expect(countsOf(first, ...others)).toEqual([3, 0, 0]);
    expect(others[0].eventsOf('other-shard-map')).toHaveLength(1);
    const stopped = first.relay.stop();
    await world.clock.advance(6_000);
    await stopped;
    expect(countsOf(...others)).toEqual([2, 2]);
    expect(others[0].relay.snapshot().shards.map(({ otherMap }) => otherMap)).toEqual([null, null, null, null]);
  });

  test('is not served beside the first, even where both were agreed on before a lease was granted', async () => {
    const barrier = new Barrier();
    barrier.closed = true;
    const slow = share('a', {
      options: { shards: shardsOf(1) },
      ports: ({ leases }) => ({
        leases: {
          ...leases,
          async acquire(request) {
            await barrier.pass();
            return await leases.acquire(request);
          },
        },
      }),
    });
    await world.clock.advance(4_000);
    barrier.closed = false;
    const quick = share('b', { options: { leaseMs: 1_000, sendMs: 900 } });
    await world.clock.advance(500);
    expect(countsOf(quick)).toEqual([4]);
    barrier.open();
    await world.clock.advance(20_000);
    expect(countsOf(slow, quick)).toEqual([0, 4]);
    expect(slow.eventsOf('lease-acquired')).toEqual([]);
  });
});
