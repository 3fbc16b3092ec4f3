import { sleep } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { start, world } from './relay-engine.fixture.js';
import { commit, unavailable } from './relay-engine.support.js';

describe('what a relay tells of its progress', () => {
  test('a standby counts the requests for its lease that had no answer, until one has', async () => {
    let cut = true;
    const relay = start({
      ports: ({ leases }) => ({
        leases: { ...leases, acquire: (request) => (cut ? unavailable() : leases.acquire(request)) },
      }),
    });
    await world.clock.advance(3_000);
    const { state, leaseFailuresInARow, sinceLeaseAnswerMs } = relay.shard();
    expect({ state, sinceLeaseAnswerMs }).toEqual({ state: 'standby', sinceLeaseAnswerMs: null });
    expect(leaseFailuresInARow).toBeGreaterThan(2);
    cut = false;
    await world.clock.advance(2_000);
    expect(relay.shard()).toMatchObject({ state: 'following', leaseFailuresInARow: 0 });
  });

  test('rows that cannot be marked are counted from when they began to wait, however long nothing was to be marked', async () => {
    let cut = false;
    const relay = start({
      ports: ({ marker }) => ({ marker: { mark: (m) => (cut ? unavailable() : marker.mark(m)) } }),
    });
    commit(world, 'a');
    await world.clock.advance(60_000);
    expect(relay.shard().unmarkedForMs).toBeNull();
    cut = true;
    commit(world, 'a');
    await world.clock.advance(5_000);
    expect(relay.shard().unmarkedForMs).toBeGreaterThan(4_000);
    expect(relay.shard().unmarkedForMs).toBeLessThan(5_001);
    cut = false;
    await world.clock.advance(10_000);
    expect(relay.shard().unmarkedForMs).toBeNull();
  });

  test('a checkpoint that cannot be saved while the stream moves is told, and forgotten once it can', async () => {
    let cut = false;
    const relay = start({
      ports: ({ checkpoints }) => ({
        checkpoints: { ...checkpoints, save: (save) => (cut ? unavailable() : checkpoints.save(save)) },
      }),
    });
    await world.clock.advance(30_000);
    cut = true;
    commit(world, 'a');
    await world.clock.advance(40_000);
    expect(relay.shard().uncoveredForMs).toBeGreaterThan(38_000);
    cut = false;
    await world.clock.advance(11_000);
    expect(relay.shard().uncoveredForMs ?? 0).toBeLessThanOrEqual(10_000);
  });

  test('a sweep that cannot read gets no further', async () => {
    let cut = true;
    const relay = start({
      ports: ({ reader }) => ({
        reader: { ...reader, readUnsettled: (r) => (cut ? unavailable() : reader.readUnsettled(r)) },
      }),
    });
    await world.clock.advance(20_000);
    expect(relay.shard().state).toBe('sweeping');
    expect(relay.shard().sinceAheadMs).toBeGreaterThan(19_000);
    cut = false;
    await world.clock.advance(6_000);
    expect(relay.shard().state).toBe('following');
    expect(relay.shard().sinceAheadMs).toBeLessThan(1_100);
  });

  test('a sweep that reads slowly gets ahead', async () => {
    const relay = start({
      ports: ({ reader }) => ({
        reader: {
          ...reader,
          readUnsettled: async (request) => {
            await sleep(world.clock, 1_000);
            return await reader.readUnsettled(request);
          },
        },
      }),
    });
    await world.clock.advance(50_500);
    expect(relay.shard().state).toBe('sweeping');
    expect(relay.shard().sinceAheadMs).toBeLessThan(1_001);
  });
});
