import { expect, it } from 'vitest';
import { TimeLimitError, settledWithin, within } from './time-limit.js';

const never = new Promise<never>(() => undefined);

it('Work within its limit gives its result, or its error', async () => {
  await expect(within(Promise.resolve(1), 1_000)).resolves.toBe(1);
  await expect(within(Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no');
});

it('Work over its limit is given up', async () => {
  await expect(within(never, 5)).rejects.toThrow(TimeLimitError);
});

it('A wait for several ends when all have settled, or at the limit', async () => {
  await expect(settledWithin([Promise.resolve(1), Promise.reject(new Error('no'))], 1_000)).resolves.toBeUndefined();
  await expect(settledWithin([never], 5)).resolves.toBeUndefined();
});
