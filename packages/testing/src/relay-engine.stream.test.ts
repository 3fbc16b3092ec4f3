import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import { Barrier, OUTBOX, commit, stopRelay, unavailable } from './relay-engine.support.js';

describe('the stream', () => {
  test('whose history is lost is opened anew, swept, and recorded as a repair', async () => {
    const first = start();
    await world.clock.advance(1_000);
    commit(world, 'a');
    await world.clock.advance(1_000);
    await stopRelay(world, first);
    commit(world, 'a', 'b');
    world.database.outbox.oplog.prune(0);
    const second = start({ owner: 'relay-2' });
    await world.clock.advance(1_000);
    expect(landed).toEqual(['a/1', 'a/2', 'b/1']);
    expect(world.database.repairs.records).toMatchObject([
      { reason: 'history lost at the checkpoint', rows: 2, epoch: 2 },
    ]);
    expect(second.eventsOf('capture-opened')).toMatchObject([{ resumed: false }]);
    commit(world, 'c');
    await world.clock.advance(1_000);
    expect(landed).toContain('c/1');
  });

  test('that breaks is made good by a fresh one and a sweep', async () => {
    start();
    await world.clock.advance(100);
    world.database.outbox.oplog.breakStreams();
    commit(world, 'a');
    await world.clock.advance(1_000);
    expect(landed).toEqual(['a/1']);
    expect(world.database.repairs.records).toMatchObject([{ reason: 'stream lost', rows: 1 }]);
  });

  test('that fails to answer is opened again behind what it delivered, without a hot loop', async () => {
    let failing = false;
    const relay = start({
      ports: ({ capture }) => ({
        capture: {
          open: async (request) => {
            if (failing) return await unavailable();
            const stream = await capture.open(request);
            return { ...stream, read: () => (failing ? unavailable() : stream.read()) };
          },
        },
      }),
    });
    await world.clock.advance(1_500);
    failing = true;
    commit(world, 'a');
    await world.clock.advance(60_000);
    expect(relay.calls['open']).toBeLessThan(40);
    failing = false;
    await world.clock.advance(6_000);
    expect(landed).toEqual(['a/1']);
    expect(relay.eventsOf('capture-opened').at(-1)).toMatchObject({ resumed: true });
  });

  test.each(['took too long', 'outlasted the session'])('whose opening %s is closed again', async (reason) => {
    const barrier = new Barrier();
    barrier.closed = true;
    let held = 0;
    const relay = start({
      options: { callMs: 2_000 },
      ports: ({ capture }) => ({
        capture: {
          open: async (request) => {
            const stream = await capture.open(request);
            held += 1;
            await barrier.pass();
            const close = async (): Promise<void> => {
              held -= 1;
              await stream.close();
            };
            return { ...stream, close };
          },
        },
      }),
    });
    await world.clock.advance(reason === 'took too long' ? 2_050 : 100);
    if (reason === 'outlasted the session') await stopRelay(world, relay);
    expect(held).toBeGreaterThan(0);
    barrier.open();
    await world.clock.advance(5_000);
    const isStopped = relay.shard().state === 'stopped';
    expect(held).toBe(isStopped ? 0 : 1);
    expect(relay.calls['open']).toBe(isStopped ? 1 : 2);
  });

  test('that skips rows without a word is found out by a sweep, and recorded', async () => {
    world.database.outbox.oplog.options = { whenOvertaken: 'skip', batchMax: 100 };
    const barrier = new Barrier();
    start({
      ports: ({ capture }) => ({
        capture: {
          open: async (request) => {
            const stream = await capture.open(request);
            return {
              ...stream,
              read: async () => {
                await barrier.pass();
                return await stream.read();
              },
            };
          },
        },
      }),
    });
    await world.clock.advance(1_000);
    barrier.closed = true;
    await world.clock.advance(1_000);
    commit(world, 'a', 'a');
    world.database.outbox.oplog.prune(0);
    barrier.open();
    await world.clock.advance(500);
    expect(landed).toEqual([]);
    await world.clock.advance(70_000);
    expect(landed).toEqual(['a/1', 'a/2']);
    expect(world.database.repairs.records).toMatchObject([{ reason: 'rows that the stream did not bring', rows: 2 }]);
  });

  test('that only lags behind a sweep is no repair', async () => {
    const barrier = new Barrier();
    start({
      options: { callMs: 600_000 },
      ports: ({ capture }) => ({
        capture: {
          open: async (request) => {
            const stream = await capture.open(request);
            return {
              ...stream,
              read: async () => {
                await barrier.pass();
                return await stream.read();
              },
            };
          },
        },
      }),
    });
    await world.clock.advance(1_000);
    barrier.closed = true;
    await world.clock.advance(1_000);
    commit(world, 'a', 'a');
    await world.clock.advance(65_000);
    expect(landed).toEqual(['a/1', 'a/2']);
    barrier.open();
    await world.clock.advance(70_000);
    expect(landed).toEqual(['a/1', 'a/2']);
    expect(world.database.repairs.records).toEqual([]);
  });

  test('tells of a dropped outbox; what is written to the new one is published', async () => {
    start();
    await world.clock.advance(100);
    commit(world, 'a', 'a');
    await world.clock.advance(100);
    world.database.outbox.drop(OUTBOX);
    await world.clock.advance(100);
    commit(world, 'a', 'b');
    await world.clock.advance(1_000);
    expect(landed.filter((id) => id.startsWith('a/'))).toEqual(['a/1', 'a/2', 'a/3']);
    expect(landed).toContain('b/1');
    expect(world.database.repairs.records).toMatchObject([{ reason: 'an outbox was dropped or renamed' }]);
  });
});

describe('the checkpoint', () => {
  test('is not moved by a DEAD event, nor held back by it', async () => {
    world.broker.refuse = ({ row }) => (row.aggregateId === 'poison' ? 'permanent' : null);
    const relay = start({ options: { attemptsMax: 1 } });
    await world.clock.advance(100);
    commit(world, 'poison', 'poison', 'a', 'poison', 'a');
    await world.clock.advance(2_000);
    expect(landed).toEqual(['a/1', 'a/2']);
    expect(relay.shard()).toMatchObject({ tracked: 0, rowsInMemory: 0, lanesHeld: 1 });
    const token = world.database.checkpoints.documents.get('all')!.token!;
    expect(world.database.outbox.oplog.rowsCoveredBy(token)).toHaveLength(5);
  });

  test('waits behind what is not yet marked', async () => {
    let cut = false;
    start({
      ports: ({ marker }) => ({ marker: { mark: (marks) => (cut ? unavailable() : marker.mark(marks)) } }),
    });
    await world.clock.advance(1_100);
    cut = true;
    commit(world, 'a');
    await world.clock.advance(5_000);
    expect(landed).toEqual(['a/1']);
    const covered = (): number => {
      const token = world.database.checkpoints.documents.get('all')?.token ?? null;
      return token === null ? 0 : world.database.outbox.oplog.rowsCoveredBy(token).length;
    };
    expect(covered()).toBe(0);
    cut = false;
    await world.clock.advance(7_000);
    expect([covered(), landed.length]).toEqual([1, 1]);
  });

  test('is not saved before the sweep of a take-over has settled what it found', async () => {
    commit(world, 'a');
    const barrier = new Barrier();
    barrier.closed = true;
    start({
      ports: ({ publisher }) => ({
        publisher: {
          publish: async (request) => {
            await barrier.pass();
            return await publisher.publish(request);
          },
        },
      }),
    });
    await world.clock.advance(10_000);
    expect(world.database.checkpoints.documents.get('all')).toMatchObject({ seq: 0 });
    barrier.open();
    await world.clock.advance(20_000);
    expect(world.database.checkpoints.documents.get('all')!.seq).toBeGreaterThan(0);
  });

  test('moves on while nothing commits, so that an idle outbox never ages out', async () => {
    const relay = start();
    await world.clock.advance(25_000);
    expect(relay.shard().checkpointSeq).toBeGreaterThanOrEqual(1);
  });
});
