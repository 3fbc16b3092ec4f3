import { ProblemError, defineProblems, type ErrorProblem } from '@nightporter/http';

/** Besides the common ones. */
export const problem = defineProblems({
  unauthorized: { status: 401, title: 'A token is needed' },
  forbidden: { status: 403, title: 'The token does not allow this' },
  'producer-unknown': { status: 404, title: 'There is no such producer' },
  'group-unknown': { status: 404, title: 'There is no such group' },
  'event-unknown': { status: 404, title: 'There is no such event' },
  changed: { status: 409, title: 'It has changed meanwhile' },
  busy: { status: 409, title: 'The same is done for somebody else' },
  refused: { status: 409, title: 'The state of things does not allow this' },
  misdirected: { status: 421, title: 'The request is meant for another server' },
});

export function producerUnknown(producer: string, known: Iterable<string>): ProblemError {
  const detail = `there is no producer ${JSON.stringify(producer)}; accepted: ${[...known].join(', ')}`;
  return new ProblemError(
    problem('producer-unknown', detail, [{ parameter: 'producer', detail: 'is none of PRODUCER_DBS' }]),
  );
}

export function groupUnknown(producer: string, group: string): ProblemError {
  return new ProblemError(
    problem('group-unknown', `group ${JSON.stringify(group)} is not registered with ${producer}`),
  );
}

/** An error of nightporter travels with its code, so that the other side can raise it again. */
export const errorProblem: ErrorProblem = ({ code, message }) => {
  switch (code as string) {
    case 'NP_GROUP_START_UNAVAILABLE':
    case 'NP_REPLAY_UNFINISHED':
    case 'NP_CONFIG_INVALID':
      return { ...problem('refused', message), code };
    case 'NP_ACTION_INVALID':
    case 'NP_PAYLOAD_NOT_JSON':
    case 'NP_EVENT_INVALID':
      return { ...problem('invalid-request', message), code };
    case 'NP_STORE_UNAVAILABLE':
    case 'NP_TRANSACTION_CONFLICT':
    case 'NP_ARCHIVE_FAILED':
      return { ...problem('unavailable', message), code };
    default:
      return null;
  }
};
