import { setTimeout as delay } from 'node:timers/promises';

export interface PollOptions {
  readonly limitMs: number;
  readonly everyMs?: number;
  readonly signal: AbortSignal;
}

/** Asks until the answer is something, and returns it; null when the time is over. Rejects when the signal aborts. */
export async function poll<Answer>(ask: () => Promise<Answer | null>, options: PollOptions): Promise<Answer | null> {
  const until = performance.now() + options.limitMs;
  for (;;) {
    options.signal.throwIfAborted();
    const answer = await ask();
    if (answer !== null) return answer;
    if (performance.now() >= until) return null;
    await delay(options.everyMs ?? 100, undefined, { signal: options.signal });
  }
}
