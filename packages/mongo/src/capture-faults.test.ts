import { MongoAPIError, MongoNetworkError, MongoServerError } from 'mongodb';
import { describe, expect, it } from 'vitest';
import { captureError } from './capture-faults.js';

function serverError(code: number, message = `error ${code}`, ...errorLabels: string[]): MongoServerError {
  return new MongoServerError({ message, code, errorLabels });
}

const place = 'orders.outbox';

describe('an error of a change stream', () => {
  it.each([
    ['ChangeStreamHistoryLost', serverError(286)],
    ['ChangeStreamFatalError', serverError(280)],
    ['InvalidResumeToken', serverError(260)],
    ['CappedPositionLost', serverError(136)],
    ['BSONObjectTooLarge', serverError(10334)],
    ['a label alone', serverError(1, 'unknown', 'NonResumableChangeStreamError')],
    ['a message alone', serverError(40585, 'cannot resume stream; the resume token was not found')],
  ])('means lost at any time: %s', (_name, error) => {
    for (const isSuspect of [true, false]) {
      expect(captureError(error, { isSuspect, place })).toMatchObject({ code: 'NP_CAPTURE_LOST', cause: error });
    }
  });

  it.each([
    ['FailedToParse', serverError(9, 'bad hex')],
    ['a code without a name', serverError(50811)],
    ['BadValue', serverError(2)],
  ])('counts against a token that is suspect, and else not: %s', (_name, error) => {
    expect(captureError(error, { isSuspect: true, place })).toMatchObject({ code: 'NP_CAPTURE_LOST' });
    expect(captureError(error, { isSuspect: false, place })).toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
  });

  it.each<[string, Error]>([
    ['the network', new MongoNetworkError('connection closed')],
    ['an election', serverError(10107)],
    ['a missing permission', serverError(13, 'not authorized on admin')],
    ['a time limit', serverError(50)],
    ['a closed stream', new MongoAPIError('ChangeStream is closed')],
  ])('never counts against the token: %s', (_name, error) => {
    for (const isSuspect of [true, false]) {
      expect(captureError(error, { isSuspect, place })).toMatchObject({ code: 'NP_STORE_UNAVAILABLE' });
    }
  });
});
