import { backoffMs, sleep, type Clock, type Random, type Wakeup } from '@nightporter/protocol';
import type { RelayOptions } from './options.js';
import { isOutage, limited, storeUnavailable } from './waiting.js';

/** What a call answers when the session ended before the database did. */
export const OVER = Symbol('over');
export type Over = typeof OVER;

export interface RepeatedCall<T> {
  /** An error that it accepts is thrown at once. */
  readonly isAnswer?: (error: unknown) => boolean;
  /** Told what nobody waits for any more, where that must be given back. */
  readonly onLate?: (value: T) => void;
}

export interface DatabaseCallsDetails {
  readonly clock: Clock;
  readonly random: Random;
  readonly options: Pick<RelayOptions, 'callMs' | 'databaseDelayMs' | 'databaseDelayMaxMs'>;
  /** Rings for good when the session is over. */
  readonly over: Wakeup;
  readonly onFailure: (operation: string, error: unknown) => void;
}

/** How a session calls its database: with a time limit, and again with backoff until it answers or the session is over. */
export class DatabaseCalls {
  readonly #details: DatabaseCallsDetails;

  constructor(details: DatabaseCallsDetails) {
    this.#details = details;
  }

  /** One attempt. */
  async once<T>(call: () => Promise<T>, onLate?: (value: T) => void): Promise<T> {
    const { clock, over, options } = this.#details;
    return await limited(call, { clock, over, limitMs: options.callMs, onLimit: storeUnavailable }, onLate);
  }

  /**
   * Repeats `call` until it succeeds; `call` runs anew each time and may build another request. An error that `isAnswer`
   * accepts, and one that is no outage, is thrown at once.
   */
  async untilDone<T>(
    operation: string,
    call: () => Promise<T>,
    { isAnswer = () => false, onLate }: RepeatedCall<T> = {},
  ): Promise<T | Over> {
    const { over, onFailure } = this.#details;
    const isOver = (): boolean => over.rungForGood;
    for (let failures = 1; ; failures += 1) {
      if (isOver()) return OVER;
      try {
        const value = await this.once(call, onLate);
        if (!isOver()) return value;
        onLate?.(value);
        return OVER;
      } catch (error) {
        if (isOver()) return OVER;
        if (isAnswer(error) || !isOutage(error)) throw error;
        onFailure(operation, error);
      }
      await this.pause(failures);
    }
  }

  /** Waits as long as is fit after so many failures in a row. */
  async pause(failures: number): Promise<void> {
    const { clock, random, options, over } = this.#details;
    const backoff = { firstMs: options.databaseDelayMs, maxMs: options.databaseDelayMaxMs };
    await sleep(clock, backoffMs(backoff, failures, random), over);
  }
}
