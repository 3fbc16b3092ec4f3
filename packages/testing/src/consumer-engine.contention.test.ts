import { NightporterError, sleep } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { send, startMember, stopMember, type MemberSetup } from './consumer-engine.support.js';
import { createMemoryWorld, type MemorySession, type MemoryWorld } from './memory/index.js';

const LOOPS = 8;
const EVENTS = 100;

function readStock(world: MemoryWorld): Promise<unknown> {
  return world.groupStores('billing').store.transact(({ session }) => session.read('stock'));
}

describe('transactions that all write one document', () => {
  test('take turns, so that nearly all of their tries commit', async () => {
    const world = createMemoryWorld({ queues: LOOPS });
    let running = 0;
    const atOnce: number[] = [];
    const takeFromStock = async (session: MemorySession): Promise<void> => {
      running += 1;
      atOnce.push(running);
      try {
        const left = Number((await session.read('stock')) ?? EVENTS);
        await sleep(world.clock, 1_000);
        await session.write('stock', left - 1);
      } finally {
        running -= 1;
      }
    };
    const member = startMember(world, {
      handlers: { OrderPaid: ({ session }) => takeFromStock(session) },
      options: { receiveLoops: LOOPS, receiveMax: 1, hardshipsMax: 1_000 },
    });
    send(world, ...Array.from({ length: EVENTS }, (_, order) => ({ aggregateId: `o${order}`, version: 1 })));
    await world.clock.advance(300_000);
    const { applied, conflicts } = member.consumer.snapshot();
    expect(applied).toBe(EVENTS);
    const stock = readStock(world);
    await world.clock.advance(10);
    expect(await stock).toBe(0);
    // They do begin side by side, and the first conflicts tell.
    expect(Math.max(...atOnce)).toBe(LOOPS);
    expect(conflicts).toBeGreaterThan(0);
    expect(conflicts).toBeLessThan(EVENTS / 4);
    await stopMember(world, member);
  });

  test('do not wait for turns until a claim runs out: nobody is charged for having been passed over', async () => {
    const world = createMemoryWorld({ queues: 1 });
    const attempts: number[] = [];
    let conflicts = 8;
    const setup: MemberSetup = {
      handlers: {
        OrderPaid: async ({ attempt, event, session }) => {
          if (event.aggregateId === 'busy') await sleep(world.clock, 4_000);
          if (event.aggregateId === 'claimed') {
            attempts.push(attempt);
            if (attempt === 1) throw new Error('not yet');
            conflicts -= 1;
            if (conflicts >= 0) throw new NightporterError('NP_TRANSACTION_CONFLICT', 'somebody else was faster');
          }
          await session.effect(event.eventId);
        },
      },
      options: { receiveMax: 1, handlerMs: 5_000, claimMs: 20_000, retryScheduleMs: [1_000] },
    };
    const member = startMember(world, setup);
    const busy = Array.from({ length: 20 }, (_, index) => ({ aggregateId: 'busy', version: index + 1 }));
    send(world, { aggregateId: 'claimed', version: 1 }, ...busy);
    await world.clock.advance(5_000);
    // It has nothing to do but what another's claim has run out of.
    const idle = startMember(world, { ...setup, ports: () => ({ subscribers: [] }) });
    await world.clock.advance(95_000);
    expect(attempts).toEqual([1, ...Array<number>(9).fill(2)]);
    expect(member.effects()).toHaveLength(21);
    await stopMember(world, member);
    await stopMember(world, idle);
  });
});
