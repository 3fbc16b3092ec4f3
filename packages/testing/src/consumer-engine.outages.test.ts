import { NightporterError } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { world, start, history, position, isDrained } from './consumer-engine.fixture.js';
import { send, settled, startMember, stopMember, type MemberSetup } from './consumer-engine.support.js';
import { createMemoryWorld } from './memory/index.js';

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
      const world = createMemoryWorld({ queues: 1 });
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
