import { NOTHING_PAUSED, samePause, sleep, type Pause } from '@nightporter/protocol';
import { OVER, type Over } from './database-calls.js';
import type { SessionContext } from './session-context.js';

/**
 * Keeps the lanes told of what operators have paused: read before anything is sent, and every `controlsEveryMs` from then on. While
 * the database does not answer, what was read last stands.
 */
export class PauseWatch {
  readonly #context: SessionContext;
  readonly #onDeferred: () => void;
  #pause: Pause = NOTHING_PAUSED;

  /** `onDeferred` is told that rows may have been deferred. */
  constructor(context: SessionContext, onDeferred: () => void) {
    this.#context = context;
    this.#onDeferred = onDeferred;
  }

  get pause(): Pause {
    return this.#pause;
  }

  async read(): Promise<Over | null> {
    const { calls, ports, lanes, shard, pump } = this.#context;
    const pause = await calls.untilDone('controls.readPause', () => ports.controls.readPause());
    if (pause === OVER) return OVER;
    if (samePause(pause, this.#pause)) return null;
    this.#pause = pause;
    lanes.setPause(pause);
    ports.observe({ kind: 'pause-changed', shard: shard.id, pause });
    pump();
    this.#onDeferred();
    return null;
  }

  /** Reads until the session is over. */
  async watch(): Promise<void> {
    const { ports, options, over, isOver } = this.#context;
    while (!isOver()) {
      await sleep(ports.clock, options.controlsEveryMs, over);
      if (!isOver()) await this.read();
    }
  }
}
