import { setMaxListeners } from 'node:events';
import { constants } from 'node:os';
import { Ending } from './ending.js';

export interface Surroundings {
  readonly progress: (line: string) => void;
  readonly signal: AbortSignal;
  /** Called with what must be done at the end, as soon as it must; the last one first. */
  readonly atEnd: (name: string, undo: () => Promise<void>) => void;
  /** Called once the services can be killed in a moment that cannot wait. */
  readonly atOnce: (kill: () => void) => void;
  /** A server or service has ended by itself: nothing can be proved any more. */
  readonly fail: (error: Error) => void;
}

type Signal = 'SIGINT' | 'SIGTERM';

/** A run of the whole shop, from its start until everything that it started is ended. */
export interface Life {
  readonly surroundings: Surroundings;
  /** Rejects once the run is interrupted, or one of its servers or services has ended by itself. */
  readonly failed: Promise<never>;
  readonly interrupted: () => Signal | null;
  /** Undoes everything; to be called once the run is over, whatever came of it. */
  readonly end: () => Promise<void>;
}

/** The first signal ends the run in order, the second at once. */
export function beginLife(progress: (line: string) => void): Life {
  const ending = new Ending(progress);
  const abort = new AbortController();
  // Every service of the shop waits with it, which is more than Node thinks sound.
  setMaxListeners(0, abort.signal);
  const interrupted = interruption(abort, progress);
  const failed = new Promise<never>((_resolve, reject) => {
    abort.signal.addEventListener('abort', () => {
      reject(abort.signal.reason as Error);
    });
  });
  // Heard of where it is waited for; the end of a run that nobody waits for any more is no failure.
  failed.catch(() => undefined);
  return {
    surroundings: {
      progress,
      signal: abort.signal,
      atEnd: (name, undo) => {
        ending.add(name, undo);
      },
      atOnce: (kill) => {
        ending.killAtOnce(kill);
      },
      fail: (error) => {
        abort.abort(error);
      },
    },
    failed,
    interrupted,
    end: () => {
      abort.abort(new Error('the run is over'));
      return ending.run();
    },
  };
}

/** The exit code of a process that a signal has ended. */
export function exitCodeOf(signal: Signal): number {
  return 128 + constants.signals[signal];
}

/** Returns what has been heard. */
function interruption(abort: AbortController, progress: (line: string) => void): () => Signal | null {
  let heard: Signal | null = null;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (heard !== null) process.exit(exitCodeOf(name));
      heard = name;
      progress(`${name}: ending everything`);
      abort.abort(new Error(`interrupted by ${name}`));
    });
  }
  return () => heard;
}
