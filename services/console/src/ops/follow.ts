import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

export interface Following {
  /** Whoever follows, at the other end. */
  readonly raw: Writable;
  readonly signal: AbortSignal;
  /** What there is to tell at each look. */
  readonly news: () => Promise<string>;
  readonly everyMs: number;
  /** How long somebody may take to read what was written; then he is let go, since what waits for it is kept in memory. Default 30 s. */
  readonly drainMs?: number;
}

const DRAIN_MS = 30_000;

/** Tells the news until `signal` says so. Never rejects, as long as `news` does not. */
export async function follow({ drainMs = DRAIN_MS, everyMs, news, raw, signal }: Following): Promise<void> {
  while (!signal.aborted) {
    const message = await news();
    // It may have ended meanwhile, and whoever writes then is told an error that nobody hears.
    if (!raw.writableEnded && !raw.write(message) && !(await isDrained(raw, signal, drainMs)) && !signal.aborted)
      raw.destroy();
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function isDrained(raw: Writable, signal: AbortSignal, drainMs: number): Promise<boolean> {
  try {
    await once(raw, 'drain', { signal: AbortSignal.any([signal, AbortSignal.timeout(drainMs)]) });
    return true;
  } catch {
    return false;
  }
}
