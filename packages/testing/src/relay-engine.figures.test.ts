import { epoch, resumeToken } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import { commit, unavailable } from './relay-engine.support.js';

describe('the figures of a relay', () => {
  test('tell rate and attempts, of which one failed', async () => {
    let failures = 1;
    const relay = start({
      ports: ({ publisher }) => ({
        publisher: {
          publish: (request) => (failures-- > 0 ? Promise.reject(new Error('?')) : publisher.publish(request)),
        },
      }),
    });
    await world.clock.advance(100);
    for (let second = 0; second < 20; second += 1) {
      commit(world, 'a', 'b', 'c', 'd');
      await world.clock.advance(1_000);
    }
    expect(relay.shard().publishesPerSecond).toBe(4);
    expect(relay.shard().counts).toMatchObject({ attempts: 81, published: 80, sendFailures: 1 });
    await world.clock.advance(20_000);
    expect(relay.shard().publishesPerSecond).toBe(0);
  });

  test('tell how far it is behind: little while the stream answers, and more and more while it does not', async () => {
    let silent = false;
    const relay = start({
      ports: ({ capture }) => ({
        capture: {
          open: async (request) => {
            const stream = await capture.open(request);
            return { ...stream, read: () => (silent ? new Promise(() => undefined) : stream.read()) };
          },
        },
      }),
    });
    await world.clock.advance(5_500);
    expect(relay.shard().lagMs).toBeLessThanOrEqual(1_000);
    silent = true;
    await world.clock.advance(20_000);
    expect(relay.shard().lagMs).toBeGreaterThan(18_000);
  });

  test('count repairs by reason, and take-overs', async () => {
    const relay = start();
    await world.clock.advance(1_000);
    world.database.outbox.oplog.append({ kind: 'drop' });
    await world.clock.advance(1_000);
    world.database.outbox.oplog.append({ kind: 'drop' });
    await world.clock.advance(1_000);
    const { repairsByReason, counts } = relay.shard();
    expect(repairsByReason).toEqual({ 'an outbox was dropped or renamed': 2 });
    expect(counts).toMatchObject({ repairs: 2, takeOvers: 1, fenced: 0 });
  });

  test('count a save that a later epoch has fenced off', async () => {
    const relay = start();
    await world.clock.advance(1_000);
    // The epoch that comes next, so that its claim is not fenced off too.
    world.database.checkpoints.claim({ shard: 'all', epoch: epoch(2) });
    commit(world, 'a');
    await world.clock.advance(2_000);
    expect(relay.eventsOf('lease-lost')).toMatchObject([{ epoch: 1, reason: 'fenced' }]);
    expect(relay.shard()).toMatchObject({ state: 'following', epoch: 2, counts: { fenced: 1 } });
  });

  test('count a claim that a later epoch has fenced off', async () => {
    world.database.checkpoints.claim({ shard: 'all', epoch: epoch(2) });
    world.database.checkpoints.save({ shard: 'all', epoch: epoch(2), seq: 1, token: resumeToken('later') });
    const relay = start();
    await world.clock.advance(500);
    expect(relay.eventsOf('lease-lost')).toMatchObject([{ epoch: 1, reason: 'fenced' }]);
    expect(relay.calls['save'] ?? 0).toBe(0);
    expect(relay.shard().counts.fenced).toBe(1);
  });

  test('tell what is unsettled to whoever holds the lease, and not to a standby', async () => {
    const holder = start({ ports: () => ({ publisher: { publish: () => Promise.reject(new Error('?')) } }) });
    await world.clock.advance(100);
    const standby = start({ owner: 'relay-2' });
    commit(world, 'a', 'a');
    await world.clock.advance(20_000);
    const { outbox } = holder.relay.snapshot();
    expect(outbox?.unsettled.PENDING.rows).toBe(2);
    expect(outbox?.unsettled.PENDING.oldestAgeMs).toBeGreaterThan(14_000);
    expect(outbox?.ageMs).toBeLessThanOrEqual(5_000);
    expect(standby.relay.snapshot().outbox).toBeNull();
    expect(holder.calls['stats']).toBeGreaterThan(0);
    expect(standby.calls['stats'] ?? 0).toBe(0);
  });

  test('hold nothing up where they cannot be had', async () => {
    let asked = 0;
    const relay = start({
      ports: () => ({
        stats: {
          read: () => {
            asked += 1;
            return asked === 1 ? new Promise(() => undefined) : unavailable();
          },
        },
      }),
    });
    commit(world, 'a');
    await world.clock.advance(40_000);
    expect(landed).toEqual(['a/1']);
    expect(relay.relay.snapshot().outbox).toBeNull();
    const stopped = relay.relay.stop();
    await world.clock.advance(1_000);
    await stopped;
  });

  test('are asked for less often where they cost much', async () => {
    let asked = 0;
    start({
      ports: ({ stats }) => ({
        stats: {
          read: async () => {
            asked += 1;
            await new Promise<void>((resolve) => world.clock.after(2_000, resolve));
            return await stats!.read();
          },
        },
      }),
    });
    await world.clock.advance(200_000);
    expect(asked).toBeLessThanOrEqual(5);
  });
});
