import type { Handlers } from '@nightporter/consumer';
import { describe, expect, test } from 'vitest';
import { world, start, failingFor, history, position } from './consumer-engine.fixture.js';
import { TOPIC, keyFor, send, settled, startMember, type MemberSetup } from './consumer-engine.support.js';
import type { MemorySession } from './memory/index.js';

describe('what cannot be sequenced or understood', () => {
  test('an unreadable message is set aside whole and acknowledged', async () => {
    const member = start();
    world.broker.topic(TOPIC).append({
      messageId: 'broken',
      messageGroup: 'a',
      body: new TextEncoder().encode('{"no":"identity"}'),
      properties: { colour: 'red' },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(world.group('billing').asides()).toMatchObject([
      { id: 'broken', properties: { colour: 'red' }, failure: { code: 'NP_MESSAGE_UNREADABLE' } },
    ]);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ setAside: 1, acknowledged: 2 });
    expect(member.told.map(({ kind }) => kind)).toContain('set-aside');
  });

  test('an identity that is no valid Unicode is unreadable, not fatal', async () => {
    const member = start();
    const body = JSON.stringify({ aggregateId: '\ud800' }).slice(1, -1);
    const envelope = JSON.stringify({
      eventId: 'x',
      source: 'orders',
      eventType: 'OrderPaid',
      eventVersion: 1,
      aggregateType: 'order',
      aggregateVersion: 1,
      occurredAt: '2026-01-02T03:04:05.678Z',
      data: null,
    });
    world.broker.topic(TOPIC).append({
      messageId: 'lone',
      messageGroup: 'a',
      body: new TextEncoder().encode(`${envelope.slice(0, -1)},${body}}`),
      properties: {},
    });
    await settled(world);
    expect(member.consumer.snapshot()).toMatchObject({ setAside: 1, acknowledged: 1, state: 'running' });
  });

  test('another event with a settled version is set aside as a version conflict', async () => {
    const member = start();
    send(world, ...history('a', 1), { aggregateId: 'a', version: 1, id: 'impostor' }, { aggregateId: 'a', version: 2 });
    await settled(world);
    expect(world.group('billing').asides()).toMatchObject([
      { id: 'impostor', failure: { code: 'NP_VERSION_CONFLICT' } },
    ]);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
  });

  test('an event that is not what was written is dead when its turn comes, and blocks its aggregate', async () => {
    const member = start();
    send(world, { aggregateId: 'a', version: 1, digest: 'f00' }, { aggregateId: 'a', version: 2 }, ...history('b', 1));
    await settled(world);
    expect(member.parked()).toMatchObject([
      { state: 'dead', failure: { code: 'NP_DIGEST_MISMATCH' } },
      { state: 'behind' },
    ]);
    expect(position('a')).toMatchObject({ version: 0, state: 'blocked' });
    expect(member.effects()).toEqual(['b-1']);
  });

  test('a consumer whose store is another group’s is refused before it starts', () => {
    const ports: MemberSetup['ports'] = ({ store }) => ({ store: { ...store, group: 'stock' } });
    expect(() => startMember(world, { ports })).toThrow(/of group billing, but the group store is of group stock/);
  });

  test('handlers that hang at every retry leave a slot to what nothing ails', async () => {
    const handlers: Handlers<MemorySession> = {
      OrderPaid: async ({ attempt, event, session }) => {
        if (!event.eventId.startsWith('hanging')) return session.effect(event.eventId);
        if (attempt > 1) await new Promise(() => undefined);
        throw new Error('no');
      },
    };
    const member = start({ handlers, options: { retryConcurrency: 4, retryScheduleMs: [100], receiveLoops: 1 } });
    for (const name of ['1', '2', '3', '4', '5']) send(world, { aggregateId: `hanging${name}`, version: 1 });
    await world.clock.advance(2_000);
    expect(member.consumer.snapshot().claimsInHand).toBe(3);
    send(world, { aggregateId: 'a', version: 2 }, { aggregateId: 'a', version: 1 });
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
  });

  test('an event that is what was written takes the place of one that is not, whichever event that claims to be', async () => {
    const member = start();
    send(
      world,
      { aggregateId: 'a', version: 1, id: 'forged', digest: 'f00' },
      { aggregateId: 'b', version: 1, digest: 'f00' },
    );
    send(world, { aggregateId: 'c', version: 2, digest: 'f00' });
    await settled(world);
    expect(member.parked().map(({ state }) => state)).toEqual(['dead', 'dead', 'gap']);
    send(
      world,
      ...history('a', 2),
      ...history('b', 2),
      { aggregateId: 'c', version: 2 },
      { aggregateId: 'c', version: 1 },
    );
    await settled(world);
    expect([...member.effects()].sort()).toEqual(['a-1', 'a-2', 'b-1', 'b-2', 'c-1', 'c-2']);
    expect(member.parked()).toEqual([]);
    const failures = world
      .group('billing')
      .asides()
      .map(({ failure }) => failure.code);
    expect(failures).toEqual(Array.from({ length: 3 }, () => 'NP_DIGEST_MISMATCH'));
  });

  test('an event whose handler fails takes that place too, with nothing left of what was there', async () => {
    const member = start({ handlers: failingFor(new Set(['a-1'])) });
    send(world, { aggregateId: 'a', version: 1, id: 'forged', digest: 'f00' }, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.parked()).toMatchObject([
      { event: { envelope: { eventId: 'a-1' } }, state: 'retry', attempts: 1, failure: { code: 'NP_HANDLER_FAILED' } },
    ]);
    expect(world.group('billing').asides()).toMatchObject([{ failure: { code: 'NP_DIGEST_MISMATCH' } }]);
  });

  test('a newer version than the catalogue knows is dead where there is a handler, and ignored where there is none', async () => {
    const read = (envelope: { eventVersion: number }): never => {
      throw new Error(`version ${envelope.eventVersion} of what?`);
    };
    const member = start({ options: { read } });
    send(world, { aggregateId: 'a', version: 1, eventType: 'OrderPainted', eventVersion: 9 });
    send(world, { aggregateId: 'a', version: 2, eventVersion: 9 });
    await settled(world);
    expect(member.inbox()).toMatchObject([{ outcome: 'ignored' }]);
    expect(member.parked()).toMatchObject([{ state: 'dead', failure: { code: 'NP_EVENT_INVALID' } }]);
  });

  test('a version that comes too early is parked, and runs at once when its turn has come', async () => {
    const member = start();
    send(world, { aggregateId: 'a', version: 3 }, { aggregateId: 'a', version: 2 });
    await settled(world);
    expect(member.parked()).toMatchObject([{ state: 'gap' }, { state: 'gap' }]);
    expect(position('a')).toMatchObject({ version: 0, state: 'open' });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3']);
    expect(member.parked()).toEqual([]);
  });

  test('versions up to the start of the group are acknowledged and leave nothing', async () => {
    const aggregate = keyFor('a');
    await world
      .groupStores('billing')
      .store.transact((transaction) =>
        transaction.save([{ kind: 'position', aggregate, position: { version: 2, startVersion: 2, state: 'open' } }]),
      );
    const member = start();
    send(world, ...history('a', 3));
    await settled(world);
    expect(member.effects()).toEqual(['a-3']);
    expect(member.consumer.snapshot()).toMatchObject({ beforeStart: 2, acknowledged: 3 });
  });

  test('a lost position is moved on by the inbox, without a second effect', async () => {
    const member = start();
    send(world, ...history('a', 3));
    await settled(world);
    const documents = world.group('billing');
    documents.losePosition(keyFor('a'));
    send(world, ...history('a', 4));
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3', 'a-4']);
    expect(position('a')).toMatchObject({ version: 4, state: 'open' });
    expect(member.consumer.snapshot().advanced).toBe(3);
  });
});
