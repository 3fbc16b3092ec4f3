import { NightporterError } from '@nightporter/protocol';
import { MongoBulkWriteError, MongoNetworkError, MongoServerError, type BulkWriteResult } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { commitAnswerOf, failureOf, isDuplicateKey, markTransient } from './failures.js';

function serverError(code: number, ...labels: string[]): MongoServerError {
  return new MongoServerError({ message: `code ${code}`, code, errorLabels: labels });
}

function bulkError(reason: ConstructorParameters<typeof MongoBulkWriteError>[0]): MongoBulkWriteError {
  return new MongoBulkWriteError(reason, undefined as unknown as BulkWriteResult);
}

const TRANSIENT = 'TransientTransactionError';

describe('what an error means for a transaction', () => {
  it.each<[string, unknown, string]>([
    ['a write conflict', serverError(112, TRANSIENT), 'conflict'],
    ['a transaction that the server no longer has', serverError(251, TRANSIENT), 'aborted'],
    ['a step-down', serverError(189, TRANSIENT), 'unavailable'],
    ['a broken connection, labelled or not', new MongoNetworkError('reset'), 'unavailable'],
    ['a duplicate key of the business', serverError(11000), 'fatal'],
    ['a duplicate head', markTransient(serverError(11000)), 'conflict'],
    ['a validation error of the server', serverError(121), 'fatal'],
    ['an error of the business', new Error('no stock'), 'fatal'],
    ['one of our own refusals', new NightporterError('NP_VERSION_EXPECTED', 'x'), 'fatal'],
    ['a write conflict that the business wrapped', new Error('x', { cause: serverError(112, TRANSIENT) }), 'conflict'],
    [
      'a broken connection under a bulk write, which drops its labels',
      bulkError(new MongoNetworkError('closed')),
      'unavailable',
    ],
    ['a write conflict under a bulk write', bulkError({ message: 'x', code: 112 }), 'conflict'],
    ['a duplicate key under a bulk write', bulkError({ message: 'x', code: 11000 }), 'fatal'],
    [
      'an error of the business that happens to have such a code',
      Object.assign(new Error('x'), { code: 112 }),
      'fatal',
    ],
    ['something thrown that is no error', 'text', 'fatal'],
    ['nothing', undefined, 'fatal'],
  ])('tells %s', (_name, error, kind) => {
    expect(failureOf(error).kind).toBe(kind);
  });

  it('does not follow a circle of causes for ever', () => {
    const error = new Error('a');
    error.cause = error;
    expect(failureOf(error).kind).toBe('fatal');
  });

  it('takes errors of another copy of the driver by their shape', () => {
    const foreign = Object.assign(new Error('conflict'), {
      code: 112,
      hasErrorLabel: (label: string) => label === TRANSIENT,
      addErrorLabel: () => undefined,
    });
    expect(failureOf(foreign).kind).toBe('conflict');
  });

  it.each<[string, unknown, string]>([
    ['a refusal of the server', serverError(251, TRANSIENT), 'refused'],
    ['an unknown result', serverError(50, 'UnknownTransactionCommitResult'), 'unanswered'],
    ['a broken connection', new MongoNetworkError('reset'), 'unanswered'],
    ['an error without any label', serverError(100), 'unanswered'],
  ])('takes %s of a commit for what it is', (_name, error, kind) => {
    expect(commitAnswerOf(error).kind).toBe(kind);
  });

  it('knows a duplicate key', () => {
    expect(isDuplicateKey(serverError(11000))).toBe(true);
    expect(isDuplicateKey(serverError(112))).toBe(false);
    expect(isDuplicateKey('11000')).toBe(false);
  });
});
