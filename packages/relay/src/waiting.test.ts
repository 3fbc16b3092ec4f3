import { Wakeup, type Clock } from '@nightporter/protocol';
import { expect, test } from 'vitest';
import { anyOf, limited, storeUnavailable } from './waiting.js';

/** A clock that stands still; `fire` lets what is due happen. */
function stoppedClock(): Clock & { fire(): void; pending(): number } {
  const timers = new Set<() => void>();
  return {
    now: () => 0,
    after(_delayMs, run) {
      timers.add(run);
      return () => timers.delete(run);
    },
    fire() {
      for (const run of [...timers]) run();
    },
    pending: () => timers.size,
  };
}

const never = (): Promise<never> => new Promise(() => undefined);

test.each(['has no answer in time', 'is over'])(
  'the late answer of a call that %s can be given back',
  async (reason) => {
    const clock = stoppedClock();
    const over = new Wakeup();
    const late: string[] = [];
    let answer: (value: string) => void = () => undefined;
    const call = (): Promise<string> => new Promise((resolve) => (answer = resolve));
    const limit = { clock, limitMs: 10, over, onLimit: storeUnavailable };
    const given = limited(call, limit, (value) => late.push(value));
    if (reason === 'is over') over.ringForGood();
    else clock.fire();
    await expect(given).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    answer('late');
    await Promise.resolve();
    expect(late).toEqual(['late']);
    expect(
      await limited(
        () => Promise.resolve('early'),
        { ...limit, over: new Wakeup() },
        (value) => late.push(value),
      ),
    ).toBe('early');
    expect(late).toEqual(['late']);
  },
);

test('a call that answers in time leaves no timer behind', async () => {
  const clock = stoppedClock();
  const limit = { clock, limitMs: 10, over: new Wakeup(), onLimit: storeUnavailable };
  expect(await limited(() => Promise.resolve(7), limit)).toBe(7);
  await expect(limited(() => Promise.reject(new TypeError('no')), limit)).rejects.toThrow(TypeError);
  expect(clock.pending()).toBe(0);
});

test('a call without an answer is given up at its limit, and when the session is over', async () => {
  const clock = stoppedClock();
  const over = new Wakeup();
  const limit = { clock, limitMs: 10, over, onLimit: storeUnavailable };
  const late = limited(never, limit);
  clock.fire();
  await expect(late).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
  const cut = limited(never, limit);
  over.ringForGood();
  await expect(cut).rejects.toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
  expect(clock.pending()).toBe(0);
});

test('whoever waits for several bells is woken by the first of them', async () => {
  const [one, other] = [new Wakeup(), new Wakeup()];
  const woken = anyOf(one, other);
  other.ring();
  await woken;
});
