import { OVER } from './database-calls.js';
import type { SessionContext } from './session-context.js';
import type { Sweeper } from './sweeper.js';

/**
 * Captures new rows by reading the outbox again and again, in place of following a stream. The lanes decide, as ever, what may be sent,
 * and each row is claimed before it is. The checkpoint stays where a stream has left it: a relay that follows the stream again resumes
 * there, or sweeps where that has become impossible.
 */
export class Poller {
  readonly #context: SessionContext;
  readonly #sweeper: Sweeper;
  #hasPolled = false;

  constructor(context: SessionContext, sweeper: Sweeper) {
    this.#context = context;
    this.#sweeper = sweeper;
  }

  /** Everything that had committed when the session began has been read. */
  get isFollowing(): boolean {
    return this.#hasPolled;
  }

  /** Runs until the session is over. */
  async run(): Promise<void> {
    const { epoch, options, progress, ports, isOver } = this.#context;
    let inherited = epoch > 1;
    while (!isOver()) {
      if ((await this.#sweeper.sweepBusySlots({ inherited })) === OVER) return;
      inherited = false;
      this.#hasPolled = true;
      progress.readAtMs = ports.clock.now();
      await this.#sweeper.rest(options.pollEveryMs);
    }
  }
}
