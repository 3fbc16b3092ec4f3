import type { ErrorProblem } from '@nightporter/http';
import { problem } from './problems.js';

/** What the errors of the write side mean to a caller. */
export const errorProblem: ErrorProblem = ({ code, message }) => {
  switch (code as string) {
    case 'NP_PAYLOAD_NOT_JSON':
    case 'NP_EVENT_INVALID':
      return problem('invalid-request', message);
    case 'NP_EVENT_TOO_LARGE':
      return problem('body-too-large', message);
    case 'NP_TRANSACTION_CONFLICT':
      return problem('unavailable', 'too many requests are changing this order at once; try again');
    case 'NP_STORE_UNAVAILABLE':
      return problem(
        'unavailable',
        'the database did not answer, and the request may have been carried out: with an Idempotency-Key, repeat it with the same key; without one, look first whether it was',
      );
    default:
      return null;
  }
};
