import { NightporterError, isNightporterError, sleep, type Clock, type Wakeup } from '@nightporter/protocol';

/** Resolves when one of the bells rings. */
export async function anyOf(...wakeups: readonly Wakeup[]): Promise<void> {
  await new Promise<void>((resolve) => {
    const detach: (() => void)[] = [];
    const finish = (): void => {
      for (const undo of detach) undo();
      resolve();
    };
    for (const wakeup of wakeups) detach.push(wakeup.onceRung(finish));
  });
}

/** Waits for `isDone`, asking again at every ring; gives up at `untilMs`. */
export async function waitUntil(
  clock: Clock,
  wait: { isDone: () => boolean; untilMs: number; wakeups: readonly Wakeup[] },
): Promise<void> {
  while (!wait.isDone() && clock.now() < wait.untilMs) {
    await sleep(clock, wait.untilMs - clock.now(), ...wait.wakeups);
  }
}

export interface CallLimit {
  readonly clock: Clock;
  readonly limitMs: number;
  /** Gives the call up as soon as it rings for good. */
  readonly over: Wakeup;
  /** What the caller is told when there is no answer in time. */
  readonly onLimit: (message: string) => Error;
}

/**
 * A call with a time limit. A call that is given up may still execute; its answer is ignored, unless it is something that must be given
 * back: that is told to `onLate`.
 */
export async function limited<T>(
  call: () => Promise<T>,
  { clock, limitMs, over, onLimit }: CallLimit,
  onLate?: (value: T) => void,
): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    let isFinished = false;
    const detach: (() => void)[] = [];
    const finish = (act: () => void): void => {
      isFinished = true;
      for (const undo of detach) undo();
      act();
    };
    detach.push(
      clock.after(limitMs, () => {
        finish(() => {
          reject(onLimit(`no answer within ${limitMs} ms`));
        });
      }),
    );
    detach.push(
      over.onceRung(() => {
        finish(() => {
          reject(onLimit('given up: the session is over'));
        });
      }),
    );
    call().then(
      (value) => {
        if (isFinished) onLate?.(value);
        finish(() => {
          resolve(value);
        });
      },
      (error: unknown) => {
        finish(() => {
          reject(asError(error));
        });
      },
    );
  });
}

export function storeUnavailable(message: string): NightporterError {
  return new NightporterError('NP_STORE_UNAVAILABLE', message);
}

/** What passes by itself. Anything else that a database call throws is a broken invariant, which trying again does not mend. */
export function isOutage(error: unknown): boolean {
  return isNightporterError(error, 'NP_STORE_UNAVAILABLE') || isNightporterError(error, 'NP_CAPTURE_LOST');
}

export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
