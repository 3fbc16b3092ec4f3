import { Wakeup, type Clock } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { Turns } from './turns.js';

/** Timers run when their time is set. */
class HandClock implements Clock {
  readonly #timers = new Map<() => void, number>();
  #now = 0;

  now(): number {
    return this.#now;
  }

  after(delayMs: number, run: () => void): () => void {
    this.#timers.set(run, this.#now + delayMs);
    return () => this.#timers.delete(run);
  }

  get timers(): number {
    return this.#timers.size;
  }

  async set(now: number): Promise<void> {
    this.#now = now;
    for (const [run, at] of this.#timers) if (at <= now) run();
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let tick = 0; tick < 5; tick += 1) await Promise.resolve();
}

function setUp(): {
  clock: HandClock;
  hurry: Wakeup;
  turns: Turns;
  begun: string[];
  begin: (name: string) => Promise<void>;
} {
  const clock = new HandClock();
  const hurry = new Wakeup();
  const turns = new Turns(clock);
  const begun: string[] = [];
  const begin = async (name: string): Promise<void> => {
    void turns.begin({ longestMs: 1_000, hurry }).then(() => begun.push(name));
    await settle();
  };
  return { clock, hurry, turns, begun, begin };
}

describe('turns', () => {
  it('come at once while nothing conflicts, however many', async () => {
    const { begun, begin, turns } = setUp();
    for (const name of ['a', 'b', 'c', 'd', 'e']) await begin(name);
    expect(begun).toEqual(['a', 'b', 'c', 'd', 'e']);
    turns.end('otherwise');
    expect(turns.limit).toBe(Number.POSITIVE_INFINITY);
  });

  it('are half as many after each conflict, and never fewer than one', async () => {
    const { begin, turns } = setUp();
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) await begin(name);
    const limits: number[] = [];
    for (let conflict = 0; conflict < 6; conflict += 1) {
      turns.end('conflicted');
      limits.push(turns.limit);
    }
    expect(limits).toEqual([4, 2, 1, 1, 1, 1]);
  });

  it('become one more with every eight commits, and none more with what failed by itself', async () => {
    const { begin, turns } = setUp();
    await begin('a');
    turns.end('conflicted');
    const limits: number[] = [];
    for (let commit = 1; commit <= 16; commit += 1) {
      await begin('b');
      turns.end('committed');
      await begin('c');
      turns.end('otherwise');
      limits.push(turns.limit);
    }
    expect(limits).toEqual([...Array<number>(7).fill(1), ...Array<number>(8).fill(2), 3]);
  });

  it('go to who has waited longest, as soon as one ends', async () => {
    const { begun, begin, clock, turns } = setUp();
    await begin('a');
    turns.end('conflicted');
    for (const name of ['b', 'c', 'd']) await begin(name);
    expect(begun).toEqual(['a', 'b']);
    turns.end('otherwise');
    // Who comes meanwhile stands behind.
    await begin('e');
    expect(begun).toEqual(['a', 'b', 'c']);
    turns.end('otherwise');
    turns.end('otherwise');
    await settle();
    expect(begun).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(clock.timers).toBe(0);
  });

  it('are not waited for longer than the longest wait: a handler that hangs delays the others, and stops none', async () => {
    const { begun, begin, clock, turns } = setUp();
    await begin('a');
    turns.end('conflicted');
    await begin('hangs');
    await begin('b');
    await clock.set(999);
    expect(begun).toEqual(['a', 'hangs']);
    await clock.set(1_000);
    expect(begun).toEqual(['a', 'hangs', 'b']);
    // Both are counted: who comes now waits for both.
    await begin('c');
    turns.end('otherwise');
    await settle();
    expect(begun).toHaveLength(3);
    turns.end('otherwise');
    await settle();
    expect(begun).toEqual(['a', 'hangs', 'b', 'c']);
  });

  it('are not waited for once what runs is rolled back', async () => {
    const { begun, begin, hurry, turns } = setUp();
    await begin('a');
    turns.end('conflicted');
    await begin('b');
    await begin('c');
    hurry.ringForGood();
    await settle();
    expect(begun).toEqual(['a', 'b', 'c']);
  });

  it('are over whatever becomes of the work', async () => {
    const { begun, begin, turns } = setUp();
    await begin('a');
    turns.end('conflicted');
    await begin('b');
    await begin('c');
    const failing = turns.during(
      () => Promise.reject(new Error('a tracer that throws')),
      () => 'committed',
    );
    await expect(failing).rejects.toThrow('a tracer that throws');
    expect(begun).toEqual(['a', 'b', 'c']);
  });

  it('end as the work says', async () => {
    const { begin, turns } = setUp();
    for (const name of ['a', 'b', 'c', 'd']) await begin(name);
    const done = await turns.during(
      () => Promise.resolve('done'),
      () => 'conflicted',
    );
    expect(done).toBe('done');
    expect(turns.limit).toBe(2);
  });
});
