import type { Clock } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { ConflictLanes } from './conflict-lanes.js';

/** A clock whose timers run when told. */
function heldClock(): Clock & { readonly timers: Set<() => void> } {
  const timers = new Set<() => void>();
  return {
    timers,
    now: () => 0,
    after: (_delayMs, run) => {
      timers.add(run);
      return () => timers.delete(run);
    },
  };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

describe('the lanes of losers', () => {
  it('let one in at a time, in the order of their coming', async () => {
    const lanes = new ConflictLanes(heldClock());
    const order: number[] = [];
    const leaves: (() => void)[] = [];
    for (const n of [1, 2, 3]) {
      void lanes.enter('a', 1_000).then((leave) => {
        order.push(n);
        leaves.push(leave);
      });
    }
    for (const expected of [[1], [1, 2], [1, 2, 3]]) {
      await settled();
      expect(order).toEqual(expected);
      leaves.at(-1)?.();
    }
  });

  it('do not wait for each other', async () => {
    const lanes = new ConflictLanes(heldClock());
    await lanes.enter('a', 1_000);
    await lanes.enter('b', 1_000);
    expect(lanes.size).toBe(2);
  });

  it('let a waiter through when its time is over, and those behind it still wait for both', async () => {
    const clock = heldClock();
    const lanes = new ConflictLanes(clock);
    const leaveFirst = await lanes.enter('a', 1_000);
    const second = lanes.enter('a', 1_000);
    await settled();
    for (const run of clock.timers) run();
    const leaveSecond = await second;
    let third = false;
    const entering = lanes.enter('a', 1_000).then((leave) => {
      third = true;
      return leave;
    });
    leaveSecond();
    await settled();
    expect(third).toBe(false);
    leaveFirst();
    (await entering)();
    expect(third).toBe(true);
  });

  it('leave neither a lane nor a timer behind', async () => {
    const clock = heldClock();
    const lanes = new ConflictLanes(clock);
    const leave = await lanes.enter('a', 1_000);
    const next = lanes.enter('a', 1_000);
    leave();
    (await next)();
    expect([lanes.size, clock.timers.size]).toEqual([0, 0]);
  });
});
