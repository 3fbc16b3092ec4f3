import { epoch } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { landed, start, world } from './relay-engine.fixture.js';
import { commit, idOf, statusOf, stopRelay, type RelaySetup, type RelayUnderTest } from './relay-engine.support.js';

const polling = (owner: string, options: RelaySetup['options'] = {}): RelayUnderTest =>
  start({ owner, options: { capture: 'polling', ...options } });

/** Claims a row as another relay would. */
function claim(aggregateId: string, version: number, relay: string): void {
  const row = world.database.outbox.find(idOf(aggregateId, version))!;
  const { namespace, eventId, revision } = row;
  world.database.outbox.mark([{ kind: 'claimed', namespace, eventId, revision, relay, epoch: epoch(1) }]);
}

describe('a relay that polls', () => {
  test('claims each row before it sends it, in the order of its aggregate, and opens no stream', async () => {
    const statusAtSend: string[] = [];
    const relay = start({
      owner: 'poller',
      options: { capture: 'polling' },
      ports: ({ publisher }) => ({
        publisher: {
          publish(request) {
            const stored = world.database.outbox.find(request.row.eventId)!;
            statusAtSend.push(`${stored.status} ${stored.claim?.relay ?? 'nobody'}`);
            return publisher.publish(request);
          },
        },
      }),
    });
    await world.clock.advance(100);
    commit(world, 'a', 'a', 'b', 'a');
    await world.clock.advance(1_500);
    expect(landed.filter((id) => id.startsWith('a/'))).toEqual(['a/1', 'a/2', 'a/3']);
    expect(landed).toHaveLength(4);
    expect(new Set(statusAtSend)).toEqual(new Set(['PROCESSING poller']));
    expect(statusOf(world, 'a', 3)).toBe('PUBLISHED');
    expect(relay.calls['open']).toBeUndefined();
    expect(relay.calls['save']).toBeUndefined();
    expect(relay.shard()).toMatchObject({ state: 'polling', rowsInMemory: 0, counts: { claimed: 4 } });
  });

  test('leaves an idle outbox nearly alone', async () => {
    const relay = polling('poller');
    await world.clock.advance(60_000);
    expect(relay.calls['readUnsettled'] ?? 0).toBe(0);
  });

  test('claims no more than it has places to send from', async () => {
    const { publisher } = { publisher: { publish: () => new Promise<never>(() => undefined) } };
    start({
      owner: 'poller',
      options: { capture: 'polling', windowMax: 3, sendMs: 600_000, leaseMs: 900_000 },
      ports: () => ({ publisher }),
    });
    for (let index = 0; index < 20; index += 1) commit(world, `order-${index}`);
    await world.clock.advance(5_000);
    const claimed = world.database.outbox.rows().filter((row) => row.status === 'PROCESSING');
    expect(claimed).toHaveLength(3);
  });

  test('leaves alone what another has claimed, with all that follows it, until that claim is too old', async () => {
    polling('poller');
    await world.clock.advance(100);
    commit(world, 'a', 'a', 'b');
    claim('a', 1, 'another');
    await world.clock.advance(290_000);
    expect(landed).toEqual(['b/1']);
    await world.clock.advance(20_000);
    expect(landed).toEqual(['b/1', 'a/1', 'a/2']);
  });

  test('takes back at its start what the owner before it had claimed, and so does one that streams', async () => {
    commit(world, 'a', 'a');
    claim('a', 1, 'a dead relay');
    const poller = polling('poller');
    await world.clock.advance(2_000);
    expect(landed).toEqual(['a/1', 'a/2']);
    expect(poller.eventsOf('claims-taken-back')).toMatchObject([{ rows: 1 }]);
    await stopRelay(world, poller);
    commit(world, 'a');
    claim('a', 3, 'poller');
    start({ owner: 'streamer' });
    await world.clock.advance(2_000);
    expect(landed).toEqual(['a/1', 'a/2', 'a/3']);
  });

  test('tries a FAILED row again when it is due, and charges it as ever', async () => {
    world.broker.refuse = ({ row }) => (row.eventId === idOf('a', 1) ? 'permanent' : null);
    const relay = polling('poller', { attemptsMax: 3, failedDelayMs: 100 });
    commit(world, 'a', 'a', 'b');
    await world.clock.advance(10_000);
    expect(statusOf(world, 'a', 1)).toBe('DEAD');
    expect(world.database.outbox.find(idOf('a', 1))?.retryCount).toBe(3);
    expect(landed).toEqual(['b/1']);
    world.broker.refuse = () => null;
    world.database.outbox.retryDead(idOf('a', 1));
    await world.clock.advance(10_000);
    expect(landed).toEqual(['b/1', 'a/1', 'a/2']);
    expect(relay.shard().rowsInMemory).toBe(0);
  });

  test('claims nothing while it is paused', async () => {
    world.database.controls.pause(null);
    polling('poller');
    commit(world, 'a', 'b');
    await world.clock.advance(10_000);
    expect(world.database.outbox.rows().map((row) => row.status)).toEqual(['PENDING', 'PENDING']);
    world.database.controls.resume(null);
    await world.clock.advance(3_000);
    expect(landed).toHaveLength(2);
  });
});

test('relays change between stream and polling while events are written: no pause, nothing lost, nothing doubled', async () => {
  let current = start({ owner: 'relay-0' });
  await world.clock.advance(100);
  for (let index = 1; index <= 6; index += 1) {
    const capture = index % 2 === 0 ? 'stream' : 'polling';
    const next = start({ owner: `relay-${index}`, options: { capture } });
    for (let round = 0; round < 10; round += 1) {
      commit(world, 'a', 'b', 'c');
      if (round === 5) void current.relay.stop();
      await world.clock.advance(200);
    }
    current = next;
  }
  await world.clock.advance(3_000);
  for (const id of ['a', 'b', 'c']) {
    const versions = landed.filter((event) => event.startsWith(`${id}/`));
    expect(versions).toEqual(Array.from({ length: 60 }, (_, index) => `${id}/${index + 1}`));
  }
  expect(world.database.repairs.records).toEqual([]);
});
