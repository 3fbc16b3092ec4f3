import { versionKey, type Handlers } from '@nightporter/consumer';
import { describe, expect, test } from 'vitest';
import { world, start, failingFor, history } from './consumer-engine.fixture.js';
import { keyFor, send, settled } from './consumer-engine.support.js';
import type { MemorySession } from './memory/index.js';

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
    const options = { handlerMs: 1_000, transactionMs: 1_000, claimMs: 3_000, retryScheduleMs: [100] };
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
          behind: (places, limit) => parked.behind(places, limit),
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
