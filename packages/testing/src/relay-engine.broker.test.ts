import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import { commit, idOf, startRelay, statusOf, unavailable, type RelaySetup } from './relay-engine.support.js';

const broken = (): Promise<never> => Promise.reject(new TypeError('broken'));

describe('a failing broker', () => {
  test('that is down for long kills and charges nothing', async () => {
    start();
    await world.clock.advance(100);
    world.broker.down = true;
    commit(world, 'a', 'b', 'a');
    await world.clock.advance(300_000);
    expect(world.database.outbox.rows().map((row) => [row.status, row.retryCount])).toEqual([
      ['PENDING', 0],
      ['PENDING', 0],
      ['PENDING', 0],
    ]);
    world.broker.down = false;
    await world.clock.advance(10_000);
    expect([...landed].sort()).toEqual(['a/1', 'a/2', 'b/1']);
  });

  test('that refuses one event holds back its aggregate only, until an operator skips it', async () => {
    world.broker.refuse = ({ row }) => (row.aggregateId === 'a' && row.form === 'original' ? 'permanent' : null);
    const relay = start({ options: { attemptsMax: 2 } });
    await world.clock.advance(100);
    commit(world, 'a', 'a', 'b');
    await world.clock.advance(10_000);
    expect(landed).toEqual(['b/1']);
    expect([statusOf(world, 'a', 1), statusOf(world, 'a', 2)]).toEqual(['DEAD', 'PENDING']);
    expect(relay.eventsOf('dead')).toHaveLength(1);
    world.broker.refuse = () => null;
    world.database.outbox.skipDead(idOf('a', 1));
    await world.clock.advance(6_000);
    expect(landed).toEqual(['b/1', 'a/1', 'a/2']);
    expect(world.database.outbox.find(idOf('a', 1))).toMatchObject({
      publication: { form: 'tombstone' },
      unanswered: false,
    });
  });

  test('that knows no such topic holds back that topic only, uncharged, and is probed', async () => {
    let missing = true;
    world.broker.refuse = ({ row }) => (missing && row.topic === 'invoices-events' ? 'topic' : null);
    const relay = start();
    await world.clock.advance(100);
    for (let index = 0; index < 30; index += 1) commit(world, `invoice-${index}`, `order-${index}`);
    await world.clock.advance(60_000);
    expect(landed).toHaveLength(30);
    expect(relay.shard()).toMatchObject({ topicsClosed: ['invoices-events'], rowsInMemory: 0 });
    expect(relay.shard().counts.sendFailures).toBeLessThan(60);
    expect(statusOf(world, 'invoice-0', 1)).toBe('PENDING');
    missing = false;
    await world.clock.advance(35_000);
    expect(landed).toHaveLength(60);
    expect(relay.shard().topicsClosed).toEqual([]);
    expect(world.database.repairs.records).toEqual([]);
  });

  test('that never answers one send makes it unanswered, recorded, and sent again in order', async () => {
    let silent = true;
    start({
      options: { sendMs: 1_000 },
      ports: ({ publisher }) => ({
        publisher: {
          publish: async (request) => {
            const answer = await publisher.publish(request);
            if (!silent) return answer;
            silent = false;
            return await new Promise(() => undefined);
          },
        },
      }),
    });
    await world.clock.advance(100);
    commit(world, 'a', 'a');
    await world.clock.advance(3_000);
    expect(landed).toEqual(['a/1', 'a/1', 'a/2']);
    expect(world.database.outbox.find(idOf('a', 1))).toMatchObject({ status: 'PUBLISHED', unanswered: true });
  });

  test('whose error nobody understands is tried again', async () => {
    let broken = true;
    start({
      ports: ({ publisher }) => ({
        publisher: { publish: (request) => (broken ? Promise.reject(new TypeError('?')) : publisher.publish(request)) },
      }),
    });
    await world.clock.advance(100);
    commit(world, 'a');
    await world.clock.advance(10_000);
    broken = false;
    await world.clock.advance(10_000);
    expect(landed).toEqual(['a/1']);
    expect(world.database.outbox.find(idOf('a', 1))).toMatchObject({ retryCount: 0 });
  });

  test('that takes nothing of one topic for long neither stops the other topics nor fills the memory', async () => {
    let away = true;
    world.broker.refuse = ({ row }) => (away && row.topic === 'invoices-events' ? 'transient' : null);
    const relay = start({ options: { bufferMax: 8, windowMax: 8 } });
    await world.clock.advance(100);
    for (let index = 0; index < 30; index += 1) commit(world, `invoice-${index}`);
    await world.clock.advance(5_000);
    for (let index = 0; index < 30; index += 1) commit(world, `order-${index}`);
    await world.clock.advance(5_000);
    expect(landed).toHaveLength(30);
    await world.clock.advance(300_000);
    expect(relay.shard()).toMatchObject({ topicsClosed: ['invoices-events'], rowsInMemory: 0, tracked: 0 });
    expect(world.database.outbox.find(idOf('invoice-0', 1))).toMatchObject({ status: 'PENDING', retryCount: 0 });
    away = false;
    await world.clock.advance(6_000);
    expect(landed).toHaveLength(60);
    expect(relay.shard().topicsClosed).toEqual([]);
  });

  test('that takes nothing of one topic does not keep the next owner of the lease from the other topics', async () => {
    world.broker.refuse = ({ row }) => (row.topic === 'invoices-events' ? 'transient' : null);
    for (let index = 0; index < 30; index += 1) commit(world, `invoice-${index}`);
    const relay = start({ options: { bufferMax: 8, windowMax: 8 } });
    await world.clock.advance(5_000);
    expect(relay.shard().state).toBe('following');
    commit(world, 'order-1');
    await world.clock.advance(1_000);
    expect(landed).toEqual(['order-1/1']);
  });

  test('that never takes one event lets the others of its topic through within seconds', async () => {
    world.broker.refuse = ({ row }) => (row.aggregateId === 'odd' ? 'transient' : null);
    const relay = start();
    await world.clock.advance(100);
    commit(world, 'odd');
    await world.clock.advance(60_000);
    expect(relay.shard().topicsClosed).toEqual(['orders-events']);
    commit(world, 'a', 'b', 'a');
    await world.clock.advance(11_000);
    expect([...landed].sort()).toEqual(['a/1', 'a/2', 'b/1']);
    await world.clock.advance(10_000);
    expect(world.database.outbox.find(idOf('odd', 1))).toMatchObject({ status: 'FAILED', retryCount: 0 });
    expect(relay.shard().topicsClosed).toEqual([]);
  });

  test('that cannot take some aggregates for a while has them set aside, uncharged, and the checkpoint moves', async () => {
    let partial = true;
    world.broker.refuse = ({ row }) => (partial && row.aggregateId === 'a' ? 'transient' : null);
    const relay = start();
    await world.clock.advance(100);
    commit(world, 'a', 'a');
    for (let second = 0; second < 20; second += 1) {
      commit(world, 'b');
      await world.clock.advance(1_000);
    }
    expect(world.database.outbox.find(idOf('a', 1))).toMatchObject({ status: 'FAILED', retryCount: 0 });
    expect(relay.shard().tracked).toBe(0);
    partial = false;
    await world.clock.advance(20_000);
    expect(landed.filter((id) => id.startsWith('a/'))).toEqual(['a/1', 'a/2']);
  });
});

test.each<[string, () => RelaySetup]>([
  ['the lease store', () => ({ ports: ({ leases }) => ({ leases: { ...leases, acquire: broken } }) })],
  ['the reader', () => ({ ports: ({ reader }) => ({ reader: { ...reader, readUnsettled: broken } }) })],
  [
    'the stream',
    () => ({
      ports: ({ capture }) => ({
        capture: { open: async (request) => ({ ...(await capture.open(request)), read: broken }) },
      }),
    }),
  ],
])('an error of %s that is no outage ends the relay, since trying again mends nothing', async (_name, setup) => {
  const relay = startRelay(world, setup());
  const ended = expect(relay.running).rejects.toThrow('broken');
  await world.clock.advance(1_000);
  await ended;
});

test('a failing database is waited for, and what was sent is not sent again', async () => {
  let cut = false;
  const cutOff =
    <Arguments extends unknown[], Result>(call: (...given: Arguments) => Promise<Result>) =>
    (...given: Arguments): Promise<Result> =>
      cut ? unavailable() : call(...given);
  start({
    ports: ({ reader, marker, checkpoints }) => ({
      reader: {
        readUnsettled: cutOff((request) => reader.readUnsettled(request)),
        readLanes: cutOff((lanes, limit) => reader.readLanes(lanes, limit)),
        lookUp: cutOff((references) => reader.lookUp(references)),
      },
      marker: { mark: cutOff((marks) => marker.mark(marks)) },
      checkpoints: { ...checkpoints, save: cutOff((request) => checkpoints.save(request)) },
    }),
  });
  await world.clock.advance(100);
  commit(world, 'a', 'b');
  await world.clock.advance(1);
  cut = true;
  commit(world, 'a', 'b');
  await world.clock.advance(30_000);
  cut = false;
  await world.clock.advance(10_000);
  expect([...landed].sort()).toEqual(['a/1', 'a/2', 'b/1', 'b/2']);
});
