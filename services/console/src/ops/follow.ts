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
    if (!raw.writableEnded && !raw.write(message) && !(await isDrained(raw, signal, drainMs))) raw.destroy();
    await delay(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

/** False where he was too slow; not where `signal` has ended the wait. */
async function isDrained(raw: Writable, signal: AbortSignal, drainMs: number): Promise<boolean> {
  if (signal.aborted) return true;
  // A timer of our own: Node 20 may collect the signals that AbortSignal.any waits for.
  const waiting = new AbortController();
  const end = (): void => {
    waiting.abort();
  };
  const timer = setTimeout(end, drainMs);
  signal.addEventListener('abort', end, { once: true });
  try {
    await once(raw, 'drain', { signal: waiting.signal });
    return true;
  } catch {
    return signal.aborted;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}
