/**
 * Runs with a signal that is aborted when the time is over, and rejects then, whether the run heeds it or not: what looks for credentials takes no
 * signal.
 */
export async function within<Result>(limitMs: number, run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const abort = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no end within ${limitMs} ms`));
      abort.abort();
    }, limitMs);
  });
  try {
    return await Promise.race([over, run(abort.signal)]);
  } finally {
    clearTimeout(timer);
  }
}
