import type { Clock } from '@nightporter/protocol';

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** A clock that a test moves. */
export interface ManualClock extends Clock {
  /** Moves time forward; every timer on the way fires at its own moment, and what it started settles before the next. */
  advance(byMs: number): Promise<void>;
}

export function createManualClock(): ManualClock {
  let nowMs = 0;
  const timers = new Set<Timer>();

  function nextDue(untilMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of timers)
      if (timer.atMs <= untilMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    return next;
  }

  return {
    now: () => nowMs,
    after(delayMs, run) {
      const timer = { atMs: nowMs + Math.max(0, delayMs), run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(byMs) {
      const untilMs = nowMs + byMs;
      await settled();
      for (let timer = nextDue(untilMs); timer !== undefined; timer = nextDue(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.atMs);
        timer.run();
        await settled();
      }
      nowMs = untilMs;
    },
  };
}

/** Resolves once every promise that can settle by itself has done so. */
async function settled(): Promise<void> {
  await new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
}
