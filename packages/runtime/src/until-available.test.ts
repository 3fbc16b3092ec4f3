import { describe, expect, it } from 'vitest';
import { systemClock } from './clock.js';
import { untilAvailable } from './until-available.js';

class Outage extends Error {}

function options(signal = new AbortController().signal) {
  const heard: unknown[] = [];
  return {
    heard,
    options: {
      clock: systemClock,
      signal,
      everyMs: 1,
      isOutage: (error: unknown) => error instanceof Outage,
      waiting: (error: unknown) => heard.push(error),
    },
  };
}

describe('waiting for what a service needs', () => {
  it('repeats through outages and returns the first result', async () => {
    const waiting = options();
    let attempts = 0;
    const attempt = (): Promise<string> => {
      attempts += 1;
      return attempts < 3 ? Promise.reject(new Outage('down')) : Promise.resolve('up');
    };
    expect(await untilAvailable(attempt, waiting.options)).toBe('up');
    expect(waiting.heard).toHaveLength(2);
  });

  it('ends with any other error at once', async () => {
    const waiting = options();
    await expect(untilAvailable(() => Promise.reject(new Error('wrong topic')), waiting.options)).rejects.toThrow(
      'wrong topic',
    );
    expect(waiting.heard).toEqual([]);
  });

  it('ends when it is told to stop, also in the middle of a wait', async () => {
    const stop = new AbortController();
    const waiting = options(stop.signal);
    const run = untilAvailable(() => Promise.reject(new Outage('down')), { ...waiting.options, everyMs: 60_000 });
    setTimeout(() => {
      stop.abort(new Error('stopping'));
    }, 10);
    await expect(run).rejects.toThrow('stopping');
  });
});
