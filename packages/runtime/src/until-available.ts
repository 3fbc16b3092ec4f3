import { sleep, Wakeup, type Clock } from '@nightporter/protocol';

export interface UntilAvailable {
  readonly clock: Clock;
  /** Aborting ends the wait with the signal's reason. */
  readonly signal: AbortSignal;
  readonly everyMs: number;
  /** Whether waiting can help; any other error ends the wait. */
  readonly isOutage: (error: unknown) => boolean;
  /** Told of each outage. */
  readonly waiting: (error: unknown) => void;
}

/** Repeats `attempt` until it is over for another reason than an outage: for what a service needs before it can work at all. */
export async function untilAvailable<Result>(attempt: () => Promise<Result>, options: UntilAvailable): Promise<Result> {
  const stopped = new Wakeup();
  const stop = (): void => {
    stopped.ringForGood();
  };
  options.signal.addEventListener('abort', stop, { once: true });
  try {
    for (;;) {
      options.signal.throwIfAborted();
      try {
        return await attempt();
      } catch (error) {
        if (!options.isOutage(error)) throw error;
        options.waiting(error);
      }
      await sleep(options.clock, options.everyMs, stopped);
    }
  } finally {
    options.signal.removeEventListener('abort', stop);
  }
}
