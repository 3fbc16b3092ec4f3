import { NightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { untilNoConflict } from './conflicts.js';

/** Fails with each of these in turn, then resolves to how often it ran. */
function failingWith(...errors: readonly Error[]): () => Promise<number> {
  let runs = 0;
  return () => {
    const error = errors[runs];
    runs += 1;
    return error === undefined ? Promise.resolve(runs) : Promise.reject(error);
  };
}

const lost = new NightporterError('NP_TRANSACTION_CONFLICT', 'lost to another');
const givenUp = new NightporterError('NP_TRANSACTION_ABORTED', 'ran past the limit of the server');

describe('a transaction of ours', () => {
  it('is begun anew when it loses to another, or the server gives it up', async () => {
    await expect(untilNoConflict('registering g', failingWith(lost, givenUp, lost))).resolves.toBe(4);
  });

  it('is not begun anew after any other error', async () => {
    const broken = new Error('broken');
    await expect(untilNoConflict('registering g', failingWith(broken))).rejects.toBe(broken);
  });

  it('says what it was, and that nothing was written, once it has lost for too long', async () => {
    const failing = untilNoConflict('registering g', () => Promise.reject(lost), { conflictMs: 20 });
    await expect(failing).rejects.toMatchObject({
      code: 'NP_STORE_UNAVAILABLE',
      cause: lost,
      message: expect.stringMatching(
        /^registering g: \d+ conflicts in a row in \d+ ms, and the limit is 20 ms\. Nothing was written\./,
      ),
    });
  });

  it('ends with its own error once it is told to', async () => {
    const signal = AbortSignal.abort();
    await expect(untilNoConflict('registering g', failingWith(givenUp), { signal })).rejects.toBe(givenUp);
  });
});
