import type { Clock, Random } from '@nightporter/protocol';

/** The process's own clock: monotonic, unrelated to the time of day. */
export const systemClock: Clock = {
  now: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
};

export const systemRandom: Random = () => Math.random();
