import { versionKey, type Handlers, type StartedRecords } from '@nightporter/consumer';
import { createCatalogue, defineEvent, type EventEnvelope, type ReadVerdict } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  TOPIC,
  keyFor,
  leaveEffect,
  mortalPorts,
  send,
  settled,
  startMember,
  startedRecords,
  stopMember,
  type Member,
  type MemberSetup,
  type Mortal,
  type SentEvent,
} from './consumer-engine.support.js';
import { createMemoryWorld, type MemorySession, type MemoryWorld } from './memory/index.js';

let world: MemoryWorld;
let members: Member[];

beforeEach(() => {
  world = createMemoryWorld({ queues: 1 });
  members = [];
});

afterEach(async () => {
  for (const member of members) if (member.consumer.snapshot().state === 'running') await stopMember(world, member);
});

function start(setup: MemberSetup = {}): Member {
  const member = startMember(world, setup);
  members.push(member);
  return member;
}

/** A handler that fails for the events in `poison`, and leaves their id as effect for all others. */
function failingFor(poison: Set<string>, runs: string[] = []): Handlers<MemorySession> {
  return {
    OrderPaid: async ({ event, session }) => {
      runs.push(event.eventId);
      await session.effect(event.eventId);
      if (poison.has(event.eventId)) throw new Error(`poison ${event.eventId}`);
    },
  };
}

const history = (aggregateId: string, last: number): SentEvent[] =>
  Array.from({ length: last }, (_, index) => ({ aggregateId, version: index + 1 }));

const position = (aggregateId: string, group = 'billing'): unknown =>
  world.group(group).positionOf(keyFor(aggregateId)).position;

const isDrained = (group = 'billing'): boolean =>
  world.broker.topic(TOPIC).receive({ group, max: 1, invisibleMs: 1 }).length === 0;

describe('an event of an older version', () => {
  const sample = { aggregateType: 'order', topic: TOPIC, type: 'OrderPaid' } as const;
  const first = defineEvent({ ...sample, version: 1, schema: z.object({ version: z.number() }) });
  const second = defineEvent({
    ...sample,
    version: 2,
    schema: z.object({ paid: z.object({ number: z.number() }) }),
    upcast: { from: first, data: ({ version }) => ({ paid: { number: version } }) },
  });
  const catalogue = createCatalogue([first, second]);
  const read = (envelope: EventEnvelope): ReadVerdict => catalogue.read(envelope);

  test('is read by the handler as the newest, and checked by its digest as it was written', async () => {
    send(world, { aggregateId: 'a', version: 1 });
    const seen: unknown[] = [];
    const handlers: Handlers<MemorySession> = {
      OrderPaid: async ({ event, session }) => {
        seen.push(event.eventVersion, event.data);
        await session.effect(event.eventId);
      },
    };
    const member = start({ handlers, options: { read } });
    await settled(world);
    expect(seen).toEqual([2, { paid: { number: 1 } }]);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['applied']);
    expect(member.parked()).toEqual([]);
  });

  test('is upcast anew after it was parked, whatever the handler did to what it was given', async () => {
    send(world, { aggregateId: 'a', version: 1 });
    const seen: unknown[] = [];
    const handlers: Handlers<MemorySession> = {
      OrderPaid: ({ event }) => {
        seen.push(structuredClone(event.data));
        (event.data as { paid: { number: number } }).paid.number = -1;
        return seen.length < 3 ? Promise.reject(new Error('not yet')) : Promise.resolve();
      },
    };
    const member = start({ handlers, options: { read, retryScheduleMs: [10] } });
    await world.clock.advance(1_000);
    expect(seen).toEqual(Array(3).fill({ paid: { number: 1 } }));
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['applied']);
  });

  test('is not harmed by a handler that changes its data and fails', async () => {
    send(world, { aggregateId: 'a', version: 1 });
    let runs = 0;
    const handlers: Handlers<MemorySession> = {
      OrderPaid: ({ event }) => {
        (event.data as { version: number }).version = -1;
        runs += 1;
        return runs === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve();
      },
    };
    const member = start({ handlers, options: { retryScheduleMs: [10] } });
    await world.clock.advance(1_000);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['applied']);
  });
});

describe('a healthy group', () => {
  test('applies each event once, in order, and acknowledges after the commit', async () => {
    const member = start();
    send(world, ...history('a', 3), ...history('b', 2));
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'a-2', 'a-3', 'b-1', 'b-2']);
    expect(position('a')).toEqual({ version: 3, startVersion: 0, state: 'open' });
    expect(member.consumer.snapshot()).toMatchObject({ received: 5, applied: 5, acknowledged: 5, duplicates: 0 });
    expect(isDrained()).toBe(true);
  });

  test('applies an event that is delivered twice once, and acknowledges the second at once', async () => {
    const member = start();
    send(world, { aggregateId: 'a', version: 1 }, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ applied: 1, duplicates: 1, acknowledged: 2 });
    expect(member.inbox()).toMatchObject([{ eventId: 'a-1', duplicates: 1 }]);
  });

  test('leaves the effect of an event to every group', async () => {
    const billing = start();
    const shipping = start({ group: 'shipping' });
    send(world, ...history('a', 2));
    await settled(world);
    expect(billing.effects()).toEqual(['a-1', 'a-2']);
    expect(shipping.effects()).toEqual(['a-1', 'a-2']);
  });

  test('settles a tombstone as skipped, and a type without handler as ignored', async () => {
    const member = start();
    send(
      world,
      { aggregateId: 'a', version: 1, form: 'tombstone' },
      { aggregateId: 'a', version: 2, eventType: 'constructor' },
      { aggregateId: 'a', version: 3 },
    );
    await settled(world);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['skipped', 'ignored', 'applied']);
    expect(member.effects()).toEqual(['a-3']);
  });

  test('commits what a handler emits with the event, named as its consequence', async () => {
    const member = start({
      handlers: {
        OrderPaid: ({ emit }) =>
          emit({ aggregateType: 'invoice', aggregateId: 'i', eventType: 'InvoiceSent', payload: { amount: 1 } }),
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.consumer.snapshot().applied).toBe(1);
    const rows = [...world.database.outbox.rows()];
    expect(rows).toMatchObject([{ eventType: 'InvoiceSent', headers: { causationId: 'a-1', correlationId: 'a-1' } }]);
  });

  test('takes the rest of a slow batch into the next transaction', async () => {
    const commits: number[] = [];
    start({
      options: { transactionMs: 1_000, invisibleMs: 10_000 },
      handlers: {
        OrderPaid: () =>
          new Promise((resolve) => {
            world.clock.after(600, resolve);
          }),
      },
    });
    world.group('billing').onCommitted = ({ settled: records }) => commits.push(records.length);
    send(world, ...history('a', 5));
    await world.clock.advance(4_000);
    expect(commits).toEqual([2, 2, 1]);
  });
});

describe('a poison event', () => {
  test('holds back its own aggregate only, and its successors follow in order once it works', async () => {
    const poison = new Set(['a-2']);
    const member = start({ handlers: failingFor(poison) });
    send(world, ...history('a', 4), ...history('b', 3));
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'b-1', 'b-2', 'b-3']);
    expect(isDrained()).toBe(true);
    expect(position('a')).toMatchObject({ version: 1, state: 'blocked' });
    poison.clear();
    await world.clock.advance(1_500);
    expect(member.effects().filter((id) => id.startsWith('a'))).toEqual(['a-1', 'a-2', 'a-3', 'a-4']);
    expect(position('a')).toMatchObject({ version: 4, state: 'open' });
    expect(member.parked()).toEqual([]);
  });

  test('costs its neighbours in the batch one more run, and commits them together', async () => {
    const runs: string[] = [];
    const commits: number[] = [];
    const member = start({ handlers: failingFor(new Set(['c-1']), runs) });
    world.group('billing').onCommitted = ({ settled: records }) => commits.push(records.length);
    send(world, ...['a', 'b', 'c', 'd', 'e'].map((aggregateId) => ({ aggregateId, version: 1 })));
    await settled(world);
    expect(runs).toEqual(['a-1', 'b-1', 'c-1', 'a-1', 'b-1', 'c-1', 'd-1', 'e-1']);
    expect(commits).toEqual([2, 0, 2]);
    expect(member.consumer.snapshot()).toMatchObject({ applied: 4, parked: { retry: 1 }, acknowledged: 5 });
  });

  test('that fails twice and then works is applied once, not sooner than its delays', async () => {
    const at: number[] = [];
    const attempts: number[] = [];
    const member = start({
      handlers: {
        OrderPaid: async ({ attempt, event, session }) => {
          attempts.push(attempt);
          at.push(world.clock.now());
          await session.effect(event.eventId);
          if (attempts.length < 3) throw new Error('not yet');
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(8_000);
    expect(attempts).toEqual([1, 2, 3]);
    expect(member.effects()).toEqual(['a-1']);
    expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(1_000);
    expect(at[2]! - at[1]!).toBeGreaterThanOrEqual(5_000);
    expect(member.consumer.snapshot().parked.dead).toBe(0);
  });

  test('whose attempts are spent is dead, and its successors run in order after an operator has skipped it', async () => {
    const runs: string[] = [];
    const member = start({
      handlers: failingFor(new Set(['a-1']), runs),
      options: { retryScheduleMs: [100], attemptsMax: 3 },
    });
    send(world, ...history('a', 3));
    await world.clock.advance(10_000);
    expect(runs).toEqual(['a-1', 'a-1', 'a-1']);
    expect(member.parked()).toMatchObject([{ state: 'dead', attempts: 3, failure: { message: 'poison a-1' } }, {}, {}]);
    world.group('billing').skipDead(keyFor('a'), member.parked()[0]!.event.envelope.aggregateVersion);
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-2', 'a-3']);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['skipped', 'applied', 'applied']);
  });

  test('that is dead runs again, from its first attempt, when an operator says so', async () => {
    const poison = new Set(['a-1']);
    const member = start({ handlers: failingFor(poison), options: { retryScheduleMs: [100], attemptsMax: 1 } });
    send(world, ...history('a', 2));
    await world.clock.advance(1_000);
    poison.clear();
    world.group('billing').retryDead(keyFor('a'), member.parked()[0]!.event.envelope.aggregateVersion);
    await world.clock.advance(1_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    expect(member.inbox()[0]).toMatchObject({ attempts: 1 });
  });

  test('that never ends costs its neighbours its time limit once', async () => {
    const member = start({
      options: { handlerMs: 10_000, retryScheduleMs: [60_000] },
      handlers: {
        OrderPaid: ({ event, session }) =>
          event.aggregateId === 'b' ? new Promise<void>(() => undefined) : session.effect(event.eventId),
      },
    });
    send(world, ...['a', 'b', 'c'].map((aggregateId) => ({ aggregateId, version: 1 })));
    await world.clock.advance(10_500);
    expect(member.effects()).toEqual(['a-1', 'c-1']);
  });

  test('that takes longer than its limit has failed, is told so, and can emit no more', async () => {
    const late: Promise<unknown>[] = [];
    const aborted: unknown[] = [];
    const member = start({
      options: { handlerMs: 2_000, attemptsMax: 1 },
      handlers: {
        OrderPaid: async ({ emit, signal }) => {
          signal.addEventListener('abort', () => aborted.push(signal.reason));
          await new Promise<void>((resolve) => {
            world.clock.after(5_000, resolve);
          });
          late.push(
            emit({ aggregateType: 'x', aggregateId: 'x', eventType: 'Late', payload: null }).catch(
              (error: unknown) => error,
            ),
          );
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(2_500);
    expect(member.parked()).toMatchObject([{ state: 'dead', failure: { code: 'NP_HANDLER_FAILED' } }]);
    expect(aborted).toHaveLength(1);
    await world.clock.advance(4_000);
    expect(await Promise.all(late)).toMatchObject([{ code: 'NP_NO_TRANSACTION' }]);
    expect([...world.database.outbox.rows()]).toEqual([]);
  });

  /** Processes that die in the handler of `a-1`, one after the other, each started when the one before is dead. */
  async function dieAgainAndAgain(
    setup: Pick<MemberSetup, 'options'> & { started?: StartedRecords },
  ): Promise<number[]> {
    const attemptsOnRecord: number[] = [];
    for (let process = 0; process < 8; process += 1) {
      const mortal: Mortal = { isDead: false };
      startMember(world, {
        options: { attemptsMax: 2, claimMs: 40_000, ...setup.options },
        ports: (ports) => ({
          ...mortalPorts(ports, mortal),
          ...(setup.started === undefined ? {} : { started: setup.started }),
        }),
        handlers: {
          OrderPaid: async ({ event, session }) => {
            if (event.eventId === 'a-1') {
              mortal.isDead = true;
              const [row] = world.group('billing').parked();
              attemptsOnRecord.push(row?.attempts ?? 0);
              await new Promise(() => undefined);
            }
            await session.effect(event.eventId);
          },
        },
      });
      await world.clock.advance(45_000);
      mortal.isDead = true;
    }
    return attemptsOnRecord;
  }

  test('that ends its process is charged before it runs, isolated, and dead when its attempts are spent', async () => {
    send(world, ...history('b', 1), ...history('a', 2), ...history('c', 1));
    const started = startedRecords();
    expect(await dieAgainAndAgain({ options: { deliveriesTrusted: 100 }, started })).toEqual([0, 1, 2]);
    expect(world.group('billing').effects).toEqual(['b-1', 'c-1']);
    expect(world.group('billing').parked()).toMatchObject([
      { state: 'dead', attempts: 2, failure: { code: 'NP_HANDLER_FAILED' } },
      { state: 'behind', attempts: 0 },
    ]);
  });

  test('that ends its process is found by the delivery count where nobody keeps record of what was started', async () => {
    send(world, ...history('b', 1), ...history('a', 2), ...history('c', 1));
    expect(await dieAgainAndAgain({ options: { deliveriesTrusted: 2 } })).toEqual([0, 0, 1, 2]);
    expect(world.group('billing').effects).toEqual(['b-1', 'c-1']);
    expect(world.group('billing').parked()).toMatchObject([{ state: 'dead', attempts: 2 }, {}]);
  });

  test('is not run before it is on record as started', async () => {
    let isDown = true;
    const member = start({
      ports: () => ({
        started: {
          begin: () =>
            isDown ? Promise.reject(new NightporterError('NP_STORE_UNAVAILABLE', 'gone')) : Promise.resolve([]),
        },
      }),
    });
    send(world, ...history('a', 1));
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual([]);
    expect(member.consumer.snapshot().paused).toBe(true);
    isDown = false;
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-1']);
  });
});

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

describe('when the database or the broker fails', () => {
  const unavailable = (): NightporterError => new NightporterError('NP_STORE_UNAVAILABLE', 'gone');
  const conflicting = (): NightporterError => new NightporterError('NP_TRANSACTION_CONFLICT', 'lost');

  test('an outage pauses the consumer: nothing is received, acknowledged or counted, and all follows afterwards', async () => {
    let isDown = true;
    let receives = 0;
    const member = start({
      ports: ({ store, subscribers: [subscriber] }) => ({
        store: { transact: (work) => (isDown ? Promise.reject(unavailable()) : store.transact(work)) },
        subscribers: [
          {
            ...subscriber!,
            receive: (request) => {
              receives += 1;
              return subscriber!.receive(request);
            },
          },
        ],
      }),
    });
    send(world, ...history('a', 2));
    await world.clock.advance(60_000);
    expect(receives).toBe(1);
    expect(member.consumer.snapshot()).toMatchObject({ paused: true, acknowledged: 0, applied: 0 });
    isDown = false;
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-1', 'a-2']);
    expect(member.inbox()).toMatchObject([{ attempts: 1 }, { attempts: 1 }]);
    expect(member.consumer.snapshot()).toMatchObject({ paused: false, acknowledged: 2, duplicates: 0 });
    expect(member.consumer.snapshot().parked).toEqual({ gap: 0, behind: 0, retry: 0, dead: 0 });
  });

  test('a failure of the database inside a handler is not charged to the event, even if the handler wraps it', async () => {
    let failures = 3;
    const member = start({
      handlers: {
        OrderPaid: async ({ event, session }) => {
          failures -= 1;
          if (failures >= 0) throw new Error('saving failed', { cause: unavailable() });
          await session.effect(event.eventId);
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ handlerFailures: 0, parked: { retry: 0 } });
  });

  test('a commit whose answer was lost is found to be done', async () => {
    let lost = 1;
    const member = start({
      ports: ({ store }) => ({
        store: {
          transact: async (work) => {
            const result = await store.transact(work);
            lost -= 1;
            if (lost >= 0) throw unavailable();
            return result;
          },
        },
      }),
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(2_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ duplicates: 1, acknowledged: 1 });
  });

  /** The subscriber's acknowledgements fail while `isDown` says so. */
  const withoutAcknowledgement = (isDown: () => boolean): NonNullable<MemberSetup['ports']> => {
    return ({ subscribers: [subscriber] }) => ({
      subscribers: [
        {
          ...subscriber!,
          acknowledge: (deliveries) =>
            isDown()
              ? Promise.reject(new NightporterError('NP_BROKER_UNAVAILABLE', 'gone'))
              : subscriber!.acknowledge(deliveries),
        },
      ],
    });
  };

  test('an acknowledgement that fails is repeated, so that the queue does not stay locked', async () => {
    const ports = withoutAcknowledgement(() => world.clock.now() < 500);
    const member = start({ ports });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(2_000);
    expect(member.consumer.snapshot()).toMatchObject({ acknowledged: 1, redelivered: 0 });
    expect(member.consumer.snapshot().brokerFailures).toBeGreaterThan(0);
    expect(isDrained()).toBe(true);
  });

  test('a message that could not be acknowledged is a duplicate when it comes again', async () => {
    const ports = withoutAcknowledgement(() => world.clock.now() < 35_000);
    const member = start({ ports });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(60_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ duplicates: 1, redelivered: 1 });
    expect(isDrained()).toBe(true);
  });

  test('a batch in hand is kept invisible however long it takes', async () => {
    const member = start({
      options: { handlerMs: 80_000, transactionLifetimeMs: 120_000, claimMs: 100_000 },
      handlers: {
        OrderPaid: async ({ event, session }) => {
          await new Promise<void>((resolve) => {
            world.clock.after(70_000, resolve);
          });
          await session.effect(event.eventId);
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    const other = start();
    await world.clock.advance(75_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(other.consumer.snapshot().received).toBe(0);
    expect(isDrained()).toBe(true);
  });

  test('an event that failed here but was applied elsewhere meanwhile is a duplicate, not a retry', async () => {
    const member = start({
      options: { invisibleMs: 1_000 },
      handlers: {
        OrderPaid: async () => {
          await new Promise<void>((resolve) => void world.clock.after(4_000, resolve));
          throw new Error('late');
        },
      },
      ports: ({ subscribers: [subscriber] }) => ({
        subscribers: [
          {
            receive: (request) => subscriber!.receive(request),
            acknowledge: (deliveries) => subscriber!.acknowledge(deliveries),
            extend: (deliveries) => Promise.resolve(deliveries),
          },
        ],
      }),
    });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    start();
    await world.clock.advance(6_000);
    expect(member.effects()).toEqual(['a-1']);
    expect(member.parked()).toEqual([]);
    expect(position('a')).toMatchObject({ version: 1, state: 'open' });
    expect(member.consumer.snapshot()).toMatchObject({ duplicates: 1, handlerFailures: 1 });
  });

  test('an outage of any length parks nothing', async () => {
    for (let calls = 1; calls <= 24; calls += 1) {
      world = createMemoryWorld({ queues: 1 });
      let failures = calls;
      const member = startMember(world, {
        ports: ({ store }) => ({
          store: {
            transact: (work) => {
              failures -= 1;
              return failures >= 0 ? Promise.reject(unavailable()) : store.transact(work);
            },
          },
        }),
      });
      send(world, { aggregateId: 'a', version: 1 });
      await world.clock.advance(10_000 * calls + 1_000);
      expect(member.consumer.snapshot()).toMatchObject({ applied: 1, parked: { retry: 0 } });
      await stopMember(world, member);
    }
  });

  test('a lost race is decided anew and is no attempt', async () => {
    let conflicts = 3;
    const member = start({
      handlers: {
        OrderPaid: async ({ event, session }) => {
          conflicts -= 1;
          if (conflicts >= 0) throw conflicting();
          await session.effect(event.eventId);
        },
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(1_000);
    expect(member.inbox()).toMatchObject([{ attempts: 1 }]);
    expect(member.consumer.snapshot()).toMatchObject({ conflicts: 3, applied: 1, parked: { retry: 0 } });
  });

  test('an event that can never commit is parked without an attempt, so that its queue goes on', async () => {
    const member = start({
      handlers: {
        OrderPaid: async ({ event, session }) => {
          if (event.aggregateId === 'a') throw conflicting();
          await session.effect(event.eventId);
        },
      },
    });
    send(world, ...history('a', 1), ...history('b', 1));
    await world.clock.advance(30_000);
    expect(member.effects()).toEqual(['b-1']);
    expect(member.parked()).toMatchObject([{ state: 'retry', failure: { code: 'NP_TRANSACTION_CONFLICT' } }]);
    expect(member.parked()[0]!.attempts).toBeLessThanOrEqual(1);
  });

  test('an event that makes the database fail each time is parked without an attempt, and the others go on', async () => {
    const member = start({
      handlers: {
        OrderPaid: async ({ event, session }) => {
          if (event.aggregateId === 'a') throw unavailable();
          await session.effect(event.eventId);
        },
      },
    });
    send(world, ...history('b', 1), ...history('a', 1), ...history('c', 1));
    await world.clock.advance(90_000);
    expect(member.effects()).toEqual(['b-1', 'c-1']);
    expect(member.parked()).toMatchObject([{ state: 'retry', failure: { code: 'NP_STORE_UNAVAILABLE' } }]);
    expect(member.parked()[0]!.attempts).toBeLessThanOrEqual(1);
  });

  test('a broken invariant inside a handler is a failure of its event, not of the consumer', async () => {
    const member = start({
      handlers: {
        OrderPaid: () => Promise.reject(new NightporterError('NP_INTERNAL', 'of the handler')),
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect(member.parked()).toMatchObject([{ state: 'retry', failure: { code: 'NP_INTERNAL' } }]);
    expect(member.consumer.snapshot().state).toBe('running');
  });

  test('an error that nobody knows isolates the message whose write it refuses', async () => {
    const member = start({
      ports: ({ store }) => ({
        store: {
          transact: (work) =>
            store.transact((transaction) =>
              work({
                ...transaction,
                save: (changes) => {
                  const isPoison = changes.some(
                    (change) => change.kind === 'settle' && change.event.envelope.eventId === 'b-1',
                  );
                  if (isPoison) return Promise.reject(new Error('document too large'));
                  return transaction.save(changes);
                },
              }),
            ),
        },
      }),
    });
    send(world, ...['a', 'b', 'c', 'd'].map((aggregateId) => ({ aggregateId, version: 1 })));
    await settled(world);
    expect(member.effects()).toEqual(['a-1', 'c-1', 'd-1']);
    expect(member.parked()).toMatchObject([{ state: 'retry', failure: { message: 'document too large' } }]);
  });

  test('a broken invariant ends the consumer', async () => {
    const member = startMember(world, {
      ports: () => ({
        store: { transact: () => Promise.reject(new NightporterError('NP_INTERNAL', 'impossible')) },
      }),
    });
    const ended = member.running.catch((error: unknown) => error);
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(11_000);
    expect(await ended).toMatchObject({ code: 'NP_INTERNAL' });
    expect(member.consumer.snapshot().state).toBe('stopped');
  });
});

describe('parked events', () => {
  test('are not run by a claimer whose claim another has taken over', async () => {
    const runs: string[] = [];
    const slow = (name: string, ms: number): Handlers<MemorySession> => ({
      OrderPaid: async ({ session, attempt }) => {
        if (attempt === 1) throw new Error('first');
        runs.push(name);
        await new Promise<void>((resolve) => {
          world.clock.after(ms, resolve);
        });
        await session.effect(name);
      },
    });
    const options = { handlerMs: 1_000, claimMs: 3_000, retryScheduleMs: [100] };
    const first = start({
      handlers: slow('first', 5_000),
      options: { ...options, handlerMs: 8_000, claimMs: 9_000, retryConcurrency: 1 },
      ports: ({ parked }) => ({
        parked: { ...parked, claimDue: (request) => parked.claimDue({ ...request, claimMs: 2_000 }) },
      }),
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(1_000);
    expect(runs).toEqual(['first']);
    start({ handlers: slow('second', 10), options });
    await world.clock.advance(10_000);
    expect(runs).toEqual(['first', 'second']);
    expect(first.effects()).toEqual(['second']);
  });

  test('are left to whoever took the claim over, also when the first claimer fails at last', async () => {
    const failing: Handlers<MemorySession> = {
      OrderPaid: async ({ attempt }) => {
        if (attempt > 1) await new Promise<void>((resolve) => void world.clock.after(5_000, resolve));
        throw new Error('late');
      },
    };
    const finishing: Handlers<MemorySession> = {
      OrderPaid: async ({ session }) => {
        await new Promise<void>((resolve) => void world.clock.after(6_000, resolve));
        await session.effect('second');
      },
    };
    const options = { handlerMs: 8_000, claimMs: 60_000, retryScheduleMs: [100], retryConcurrency: 1 };
    const first = start({
      handlers: failing,
      options,
      ports: ({ parked }) => ({
        parked: {
          claimDue: (request) => parked.claimDue({ ...request, claimMs: 2_000 }),
          giveBack: (claimed) => parked.giveBack(claimed),
          wake: (request) => parked.wake(request),
        },
      }),
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(1_000);
    start({ handlers: finishing, options });
    await world.clock.advance(9_000);
    expect(first.effects()).toEqual(['second']);
    expect(first.consumer.snapshot().parked.retry).toBe(1);
  });

  test('that nobody woke are found by the scanner', async () => {
    const member = start();
    send(world, { aggregateId: 'a', version: 2 });
    await settled(world);
    // What a crash in an older version left: the first version is settled, but nobody made the second due.
    const aggregate = keyFor('a');
    await world
      .groupStores('billing')
      .store.transact((transaction) =>
        transaction.save([{ kind: 'position', aggregate, position: { version: 1, startVersion: 0, state: 'open' } }]),
      );
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual(['a-2']);
    expect(member.consumer.snapshot().woken).toBe(1);
  });

  test('a redelivery of a parked event leaves it alone', async () => {
    const member = start({ handlers: failingFor(new Set(['a-1'])), options: { retryScheduleMs: [60_000] } });
    send(world, ...history('a', 2), ...history('a', 2));
    await settled(world);
    expect(member.parked()).toMatchObject([
      { state: 'retry', attempts: 1, revision: 1 },
      { state: 'behind', attempts: 0, revision: 1 },
    ]);
    expect(member.consumer.snapshot().acknowledged).toBe(4);
  });

  test('two members drain one aggregate in order, and never apply twice', async () => {
    const poison = new Set(['a-1']);
    const member = start({ handlers: failingFor(poison), options: { retryScheduleMs: [100] } });
    start({ handlers: failingFor(poison), options: { retryScheduleMs: [100] } });
    send(world, ...history('a', 40));
    await world.clock.advance(50);
    poison.clear();
    await world.clock.advance(2_000);
    expect(member.effects()).toEqual(history('a', 40).map(({ version }) => `a-${version}`));
    expect([...world.group('billing').parked()]).toEqual([]);
    expect(versionKey(keyFor('a'), 40)).toBe('orders/order/a#40');
  });
});

describe('stop', () => {
  const slowly = (ms: number): Handlers<MemorySession> => ({
    OrderPaid: async ({ event, session }) => {
      await new Promise<void>((resolve) => {
        world.clock.after(ms, resolve);
      });
      await session.effect(event.eventId);
    },
  });

  test('finishes the batch in hand, acknowledges it, and receives no more', async () => {
    const member = start({ handlers: slowly(3_000) });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    const stopped = member.consumer.stop();
    send(world, { aggregateId: 'a', version: 2 });
    await world.clock.advance(4_000);
    await stopped;
    await member.running;
    expect(member.effects()).toEqual(['a-1']);
    expect(member.consumer.snapshot()).toMatchObject({ state: 'stopped', acknowledged: 1, received: 1 });
  });

  test('rolls back what does not finish within its time, and leaves it to the broker', async () => {
    const member = start({ handlers: slowly(25_000), options: { drainMs: 5_000 } });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    const stopped = member.consumer.stop();
    await world.clock.advance(5_000);
    await stopped;
    await member.running;
    await world.clock.advance(60_000);
    expect(member.effects()).toEqual([]);
    expect(member.parked()).toEqual([]);
    const next = start({ handlers: leaveEffect });
    await world.clock.advance(40_000);
    expect(next.effects()).toEqual(['a-1']);
  });

  test('gives back a claim that did not finish, so that its attempt is not counted', async () => {
    const attempts: number[] = [];
    const handlers: Handlers<MemorySession> = {
      OrderPaid: async ({ attempt }) => {
        attempts.push(attempt);
        if (attempt === 1) throw new Error('first');
        await new Promise<void>(() => undefined);
      },
    };
    const member = start({ handlers, options: { drainMs: 5_000, retryScheduleMs: [100] } });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(1_000);
    const stopped = member.consumer.stop();
    await world.clock.advance(5_000);
    await stopped;
    await member.running;
    expect(attempts).toEqual([1, 2]);
    expect(member.parked()).toMatchObject([{ state: 'retry', attempts: 1 }]);
  });

  test('ends in time though a call never returns', async () => {
    const member = startMember(world, {
      ports: ({ subscribers: [subscriber] }) => ({
        subscribers: [{ ...subscriber!, receive: () => new Promise<never>(() => undefined) }],
      }),
    });
    await settled(world);
    const stopped = member.consumer.stop();
    await world.clock.advance(10_000);
    await stopped;
    await member.running;
    expect(member.consumer.snapshot().state).toBe('stopped');
  });
});
