import { NightporterError, sleep, type Clock, type Wakeup } from '@nightporter/protocol';

/** Why a call has no answer: `unreachable` means that it was not carried out, `unanswered` that it may have been, or may still be. */
export type NoAnswer = 'unreachable' | 'unanswered';

/** A call that the server answers only once there is something to tell, or after `forMs`. */
export interface LongPoll<Result> {
  readonly forMs: number;
  readonly isEmpty: (result: Result) => boolean;
  /** Rings when the operation may have something to tell. */
  readonly changes: Wakeup;
}

export interface CallOptions<Result> {
  readonly target: 'database' | 'broker';
  /** What the caller is told when there is no answer. */
  readonly noAnswer: (reason: NoAnswer) => Error;
  readonly longPoll?: LongPoll<Result>;
}

/**
 * The way from a process to a server. `operation` runs at the server, atomically; what it returns or throws is the answer.
 * The direct network carries every call out at once; the simulator's delays, loses, repeats and ends them with their process.
 */
export interface Network {
  call<Result>(name: string, operation: () => Result, options: CallOptions<Result>): Promise<Result>;
}

/** Every call is carried out at once and answered. */
export function directNetwork(clock: Clock): Network {
  return {
    async call(_name, operation, options) {
      let result = operation();
      const poll = options.longPoll;
      if (poll === undefined) return result;
      const deadline = clock.now() + poll.forMs;
      while (poll.isEmpty(result) && clock.now() < deadline) {
        await sleep(clock, deadline - clock.now(), poll.changes);
        result = operation();
      }
      return result;
    },
  };
}

/** Call options of a database without long polling. */
export function toDatabase<Result>(name: string): CallOptions<Result> {
  return { target: 'database', noAnswer: (reason) => storeUnavailable(name, reason) };
}

export function storeUnavailable(name: string, reason: NoAnswer): NightporterError {
  return new NightporterError('NP_STORE_UNAVAILABLE', `${name}: the database is ${reason}`);
}
