export class TimeLimitError extends Error {
  constructor(limitMs: number) {
    super(`Not done within ${limitMs} ms.`);
    this.name = 'TimeLimitError';
  }
}

/** Rejects with TimeLimitError when `work` takes longer; leaves no timer behind. */
export async function within<Result>(work: Promise<Result>, limitMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new TimeLimitError(limitMs));
    }, limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves once all have settled, or the limit has passed. */
export async function settledWithin(work: readonly Promise<unknown>[], limitMs: number): Promise<void> {
  if (work.length === 0) return;
  await within(Promise.allSettled(work), limitMs).catch((error: unknown) => {
    if (!(error instanceof TimeLimitError)) throw error;
  });
}
