import { describe, expect, it } from 'vitest';
import { Incarnation } from './incarnation.js';
import { seededRandom } from './random.js';
import { Schedule } from './schedule.js';

function newSchedule(seed = 1): Schedule {
  return new Schedule(seededRandom(seed));
}

describe('the schedule', () => {
  it('runs entries in the order of their time, and moves its clock with them', async () => {
    const schedule = newSchedule();
    const ran: string[] = [];
    for (const delayMs of [30, 10, 20, 5_000])
      schedule.after(delayMs, () => ran.push(`${delayMs} at ${schedule.nowMs}`));
    await schedule.runUntil(100);
    expect(ran).toEqual(['10 at 10', '20 at 20', '30 at 30']);
    expect(schedule.nowMs).toBe(100);
  });

  it('lets every promise settle before the next entry runs, however long the chain', async () => {
    const schedule = newSchedule();
    const ran: string[] = [];
    schedule.after(1, () => {
      void chain(500).then(() => ran.push('chain'));
    });
    schedule.after(1.001, () => ran.push('next'));
    await schedule.runUntil(10);
    expect(ran).toEqual(['chain', 'next']);
  });

  it('runs entries of one moment in an order that the seed decides', async () => {
    const orders = new Set<string>();
    for (let seed = 1; seed <= 20; seed += 1) orders.add(await orderOfOneMoment(seed));
    expect(orders.size).toBeGreaterThan(1);
    expect(await orderOfOneMoment(7)).toBe(await orderOfOneMoment(7));
  });

  it('does not run what was taken back', async () => {
    const schedule = newSchedule();
    const ran: string[] = [];
    schedule.after(5, () => ran.push('taken back'))();
    await schedule.runUntil(10);
    expect(ran).toEqual([]);
  });

  it('passes on what an entry throws', async () => {
    const schedule = newSchedule();
    schedule.after(1, () => {
      throw new Error('a fault of the simulator');
    });
    await expect(schedule.runUntil(10)).rejects.toThrow('a fault of the simulator');
  });
});

describe('a life of a process', () => {
  it('gets no timer once it is dead', async () => {
    const schedule = newSchedule();
    const life = new Incarnation('p#1', schedule, 0);
    const ran: string[] = [];
    life.clock.after(5, () => ran.push('timer'));
    life.die();
    await schedule.runUntil(10);
    expect(ran).toEqual([]);
  });

  it('gets what came while it was paused when it wakes, and what it cancelled meanwhile never', async () => {
    const schedule = newSchedule();
    const life = new Incarnation('p#1', schedule, 1_000);
    const ran: string[] = [];
    life.clock.after(5, () => ran.push(`timer at ${life.clock.now()}`));
    life.clock.after(6, () => ran.push('cancelled'))();
    life.pause(50);
    await schedule.runUntil(49);
    expect(ran).toEqual([]);
    await schedule.runUntil(51);
    expect(ran).toEqual(['timer at 1050']);
  });
});

async function chain(links: number): Promise<void> {
  for (let link = 0; link < links; link += 1) await Promise.resolve();
}

async function orderOfOneMoment(seed: number): Promise<string> {
  const schedule = newSchedule(seed);
  let order = '';
  for (const name of ['a', 'b', 'c', 'd']) {
    schedule.after(5, () => {
      order += name;
    });
  }
  await schedule.runUntil(10);
  return order;
}
