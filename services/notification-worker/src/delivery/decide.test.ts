import { describe, expect, it } from 'vitest';
import { decideDelivery, reasonOf } from './decide.js';

const delays = { kind: 'exponential', firstMs: 1_000, factor: 2, capMs: 10_000, jitter: 0.5 } as const;
const limits = (attempts: number, random = 0) => ({
  attempts,
  policy: { delays, attemptsMax: 6 },
  capMs: 10_000,
  random: () => random,
});
const transient = { kind: 'transient', reason: 'busy' } as const;

describe('what follows a send', () => {
  it.each([
    [1, 0, 1_000],
    [1, 1, 1_500],
    [3, 0, 4_000],
    [5, 1, 10_000],
  ])('that failed at attempt %d with chance %d is another after %d ms', (attempts, random, delayMs) => {
    expect(decideDelivery(transient, limits(attempts, random))).toEqual({ kind: 'retry', delayMs, reason: 'busy' });
  });

  it('is the end once its attempts are spent, or at once where it can never be taken', () => {
    expect(decideDelivery(transient, limits(6))).toEqual({ kind: 'dead', because: 'transient', reason: 'busy' });
    expect(decideDelivery({ kind: 'permanent', reason: 'no' }, limits(1))).toEqual({
      kind: 'dead',
      because: 'permanent',
      reason: 'no',
    });
  });

  it('gives a receiver the time that it asks for, but no more than the longest delay', () => {
    expect(decideDelivery({ ...transient, afterMs: 7_000 }, limits(1))).toMatchObject({ delayMs: 7_000 });
    expect(decideDelivery({ ...transient, afterMs: 9_999_999 }, limits(1))).toMatchObject({ delayMs: 10_000 });
    expect(decideDelivery({ ...transient, afterMs: 1 }, limits(1))).toMatchObject({ delayMs: 1_000 });
  });
});

describe('why a sender rejected', () => {
  it.each([
    ['its message', new Error('no route'), 'no route'],
    ['the message of its cause', new TypeError('fetch failed', { cause: new Error('refused') }), 'refused'],
    [
      'the code of a cause without a message',
      new TypeError('fetch failed', { cause: Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }) }),
      'ECONNREFUSED',
    ],
    [
      'the error where its cause says nothing',
      new TypeError('fetch failed', { cause: new Error() }),
      'TypeError: fetch failed',
    ],
    ['a text', 'gone', 'gone'],
  ])('is told by %s', (_where, error, reason) => {
    expect(reasonOf(error)).toBe(reason);
  });
});
