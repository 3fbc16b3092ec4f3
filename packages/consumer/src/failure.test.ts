import { NightporterError } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { RolledBack, classify, parkedFailureOf } from './failure.js';

describe('a failed transaction', () => {
  const conflict = new NightporterError('NP_TRANSACTION_CONFLICT', 'lost');
  test.each<[string, unknown, string]>([
    ['that lost a race is a conflict', conflict, 'conflict'],
    ['without an answer is the database’s', new NightporterError('NP_STORE_UNAVAILABLE', 'gone'), 'unavailable'],
    ['that we ended is rolled back', new RolledBack(), 'rolled-back'],
    ['that broke an invariant is nobody’s to handle', new NightporterError('NP_INTERNAL', 'no'), 'broken'],
    ['with any other error is the message’s', new Error('poison'), 'failed'],
    ['with something that is no error is the message’s', undefined, 'failed'],
    [
      'whose error a handler wrapped is still a conflict',
      new Error('x', { cause: new Error('y', { cause: conflict }) }),
      'conflict',
    ],
  ])('%s', (_name, error, expected) => {
    expect(classify(error)).toBe(expected);
  });

  test('whose causes form a circle is classified all the same', () => {
    const error = new Error('snake');
    error.cause = error;
    expect(classify(error)).toBe('failed');
  });
});

describe('the failure that is kept with a parked event', () => {
  test('carries our code, or says that the handler failed', () => {
    expect(parkedFailureOf(new NightporterError('NP_PAYLOAD_NOT_JSON', 'data.at is a Date'))).toMatchObject({
      code: 'NP_PAYLOAD_NOT_JSON',
      message: 'data.at is a Date',
    });
    expect(parkedFailureOf(new TypeError('x is undefined'))).toMatchObject({ code: 'NP_HANDLER_FAILED' });
  });

  test('is cut to a bounded size', () => {
    const error = new Error('x'.repeat(100_000));
    const failure = parkedFailureOf(error);
    expect(failure.message).toHaveLength(2_000);
    expect(failure.stack?.length).toBeLessThanOrEqual(8_000);
  });

  test('exists for whatever can be thrown', () => {
    expect(parkedFailureOf('no').message).toContain('no');
    expect(parkedFailureOf(Object.create(null)).message).toContain('no text');
    expect(parkedFailureOf(new RangeError('')).message).toBe('RangeError');
  });
});
