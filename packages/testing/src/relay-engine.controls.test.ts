import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import { commit, statusOf, stopRelay, unavailable } from './relay-engine.support.js';

describe('a relay that an operator has paused', () => {
  test('sends nothing within two seconds, leaves rows PENDING, lets the checkpoint pass them, and goes on in order', async () => {
    const relay = start();
    await world.clock.advance(100);
    commit(world, 'a');
    await world.clock.advance(500);
    world.database.controls.pause(null);
    await world.clock.advance(2_000);
    for (let index = 0; index < 30; index += 1) commit(world, 'a', 'b', 'invoice-1');
    await world.clock.advance(120_000);
    expect(landed).toEqual(['a/1']);
    expect(statusOf(world, 'b', 1)).toBe('PENDING');
    expect(relay.shard()).toMatchObject({ state: 'following', rowsInMemory: 0, tracked: 0, paused: { all: true } });
    const token = world.database.checkpoints.documents.get('all')!.token!;
    expect(world.database.outbox.oplog.rowsCoveredBy(token)).toHaveLength(91);
    world.database.controls.resume(null);
    await world.clock.advance(3_000);
    expect(landed.filter((id) => id.startsWith('a/'))).toEqual(
      Array.from({ length: 31 }, (_, index) => `a/${index + 1}`),
    );
    expect(landed.filter((id) => id.startsWith('b/'))).toEqual(
      Array.from({ length: 30 }, (_, index) => `b/${index + 1}`),
    );
    expect(landed).toHaveLength(91);
    expect(world.database.repairs.records).toEqual([]);
  });

  test('for one topic goes on with the others', async () => {
    start();
    world.database.controls.pause('invoices-events');
    await world.clock.advance(100);
    commit(world, 'a', 'invoice-1', 'invoice-1');
    await world.clock.advance(5_000);
    expect(landed).toEqual(['a/1']);
    world.database.controls.resume('invoices-events');
    await world.clock.advance(3_000);
    expect(landed).toEqual(['a/1', 'invoice-1/1', 'invoice-1/2']);
  });

  test('knows it before it sends anything, after a restart too', async () => {
    world.database.controls.pause(null);
    commit(world, 'a', 'a');
    const first = start();
    await world.clock.advance(5_000);
    await stopRelay(world, first);
    start({ owner: 'relay-2' });
    await world.clock.advance(70_000);
    expect(landed).toEqual([]);
    world.database.controls.resume(null);
    await world.clock.advance(3_000);
    expect(landed).toEqual(['a/1', 'a/2']);
  });

  test('sends nothing before it could ask', async () => {
    commit(world, 'a');
    let isDown = true;
    start({
      ports: ({ controls }) => ({ controls: { readPause: () => (isDown ? unavailable() : controls.readPause()) } }),
    });
    await world.clock.advance(10_000);
    expect(landed).toEqual([]);
    isDown = false;
    await world.clock.advance(10_000);
    expect(landed).toEqual(['a/1']);
  });

  test('stays paused while it cannot ask', async () => {
    world.database.controls.pause(null);
    let isDown = false;
    start({
      ports: ({ controls }) => ({ controls: { readPause: () => (isDown ? unavailable() : controls.readPause()) } }),
    });
    await world.clock.advance(2_000);
    isDown = true;
    commit(world, 'a');
    await world.clock.advance(100_000);
    expect(landed).toEqual([]);
  });
});

describe('the limit of sends per second', () => {
  test('holds over all shards of the process, in a backlog and afterwards', async () => {
    const halves = [0, 1].map((half) => Array.from({ length: 32 }, (_, index) => (half * 32 + index) as never));
    const shards = halves.map((slots, half) => ({ id: `half-${half}`, slots }));
    for (let index = 0; index < 200; index += 1) commit(world, `order-${index % 20}`);
    start({ options: { sendsPerSecondMax: 20, shards } });
    await world.clock.advance(5_000);
    expect(landed.length).toBeLessThanOrEqual(102);
    expect(landed.length).toBeGreaterThan(90);
    await world.clock.advance(6_000);
    expect(new Set(landed).size).toBe(200);
    expect(landed).toHaveLength(200);
  });

  test('does not hold up a stop', async () => {
    for (let index = 0; index < 50; index += 1) commit(world, 'a');
    const relay = start({ options: { sendsPerSecondMax: 1 } });
    await world.clock.advance(1_500);
    const stopped = relay.relay.stop();
    await world.clock.advance(500);
    await stopped;
    expect(landed.length).toBeLessThanOrEqual(3);
  });
});
