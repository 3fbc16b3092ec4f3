import { NightporterError } from '@nightporter/protocol';
import { MongoNetworkError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { faultOf, guarded } from './driver-errors.js';

const TRANSIENT = 'TransientTransactionError';

function serverError(code: number, ...errorLabels: string[]): MongoServerError {
  return new MongoServerError({ message: `error ${code}`, code, errorLabels });
}

function networkError(): MongoNetworkError {
  const error = new MongoNetworkError('connection closed');
  error.addErrorLabel(TRANSIENT);
  return error;
}

const noServer = new MongoServerSelectionError('none', { error: null } as never);

describe('the fault of an error of the driver', () => {
  it.each([
    ['a lost connection, though labelled transient', networkError(), 'unavailable'],
    ['no server', noServer, 'unavailable'],
    ['a stepped-down primary, though labelled transient', serverError(10107, TRANSIENT), 'unavailable'],
    ['a shutdown', serverError(11600), 'unavailable'],
    ['a write conflict', serverError(112, TRANSIENT), 'conflict'],
    ['a write conflict without a label', serverError(112), 'conflict'],
    ['a lock that was not had in time', serverError(24, TRANSIENT), 'conflict'],
    ['a duplicate key', serverError(11000), 'duplicate-key'],
    ['a duplicate key that the outbox made transient', serverError(11000, TRANSIENT), 'conflict'],
    ['a transaction that is gone', serverError(251, TRANSIENT), 'aborted'],
    ['a failed validation', serverError(121), 'refused'],
    ['a programming error', new TypeError('x is not a function'), 'foreign'],
    ['what is no error at all', 'thrown text', 'foreign'],
  ])('%s', (_name, error, fault) => {
    expect(faultOf(error)).toBe(fault);
  });

  it('is found behind what somebody wrapped around it', () => {
    const wrapped = new Error('outer', { cause: new Error('inner', { cause: serverError(112, TRANSIENT) }) });
    expect(faultOf(wrapped)).toBe('conflict');
  });

  it('does not loop on an error that causes itself', () => {
    const error = new Error('round and round');
    error.cause = error;
    expect(faultOf(error)).toBe('foreign');
  });
});

describe('a guarded call', () => {
  it('names the operation when the database fails', async () => {
    const cause = serverError(11600);
    const attempt = guarded('saving all in relay.relay_checkpoints', () => Promise.reject(cause));
    await expect(attempt).rejects.toMatchObject({
      code: 'NP_STORE_UNAVAILABLE',
      message: expect.stringContaining('saving all in relay.relay_checkpoints'),
      cause,
    });
  });

  it.each([new TypeError('a bug'), new NightporterError('NP_CONFIG_INVALID', 'no namespace')])(
    'passes on what is not the database’s: %s',
    async (error) => {
      await expect(guarded('reading', () => Promise.reject(error))).rejects.toBe(error);
    },
  );
});
