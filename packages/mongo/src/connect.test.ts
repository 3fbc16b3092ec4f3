import { expect, it } from 'vitest';
import { closeMongo } from './connect.js';

function clientThat(close: () => Promise<void>): { close(): Promise<void> } {
  return { close };
}

it('A client that does not close is given up after its time, so that it cannot hold up the end of a process', async () => {
  const startedMs = performance.now();
  await closeMongo(
    clientThat(() => new Promise(() => undefined)),
    50,
  );
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(45);
});

it('A client that closes in its time is waited for, and what it fails with is told', async () => {
  let isClosed = false;
  const closing = async (): Promise<void> => {
    await Promise.resolve();
    isClosed = true;
  };
  await closeMongo(clientThat(closing), 60_000);
  expect(isClosed).toBe(true);
  const failed = new Error('no');
  await expect(
    closeMongo(
      clientThat(() => Promise.reject(failed)),
      60_000,
    ),
  ).rejects.toBe(failed);
});
