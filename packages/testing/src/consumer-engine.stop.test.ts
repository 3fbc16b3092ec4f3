import type { Handlers } from '@nightporter/consumer';
import { describe, expect, test } from 'vitest';
import { world, start } from './consumer-engine.fixture.js';
import { leaveEffect, send, settled, startMember } from './consumer-engine.support.js';
import type { MemorySession } from './memory/index.js';

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
