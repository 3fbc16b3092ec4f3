import { isNightporterError } from '@nightporter/protocol';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MalformedJsonError } from './json-body.js';
import { problem, sendProblem } from './problems.js';
import type { Problem } from './schemas.js';
import { InvalidRequestError } from './validation.js';

/** More requests than one address may send; `after` says in words how long to wait. */
export class TooManyRequestsError extends Error {
  readonly statusCode = 429;
  readonly problem: Problem;

  constructor(after: string) {
    super('too many requests');
    this.name = 'TooManyRequestsError';
    this.problem = problem('too-many-requests', `this address sends too many requests; try again in ${after}`);
  }
}

/** Every error and every unknown route becomes a problem document; what nobody expected is logged and tells the caller nothing. */
export function answerErrors(app: FastifyInstance): void {
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, problem('not-found', `there is no ${request.method} ${pathOf(request)}`)),
  );
  app.setErrorHandler<FastifyError>((error, request, reply) => answerError(error, request, reply));
}

/** Also for errors before routing, such as a URL that cannot be decoded. */
export function answerError(error: Error, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const answer = problemOf(error);
  if (answer.status >= 500)
    request.log.error({ err: error, method: request.method, path: pathOf(request) }, 'request failed');
  return sendProblem(reply, answer);
}

function problemOf(error: Error): Problem {
  if (
    error instanceof InvalidRequestError ||
    error instanceof MalformedJsonError ||
    error instanceof TooManyRequestsError
  )
    return error.problem;
  if (isNightporterError(error)) return nightporterProblem(error.code, error.message);
  switch (codeOf(error)) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
      return problem('unsupported-media-type', 'send the body as application/json');
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return problem('body-too-large', 'the body is larger than this service reads');
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return problem('uri-too-long', 'a part of the path is longer than any id');
    default:
      return isClientError(error) ? problem('invalid-request', error.message) : internal();
  }
}

function nightporterProblem(code: string, message: string): Problem {
  switch (code) {
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
      return internal();
  }
}

function internal(): Problem {
  return problem('internal-error', 'the service has logged what went wrong');
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function isClientError(error: Error): boolean {
  return (
    'statusCode' in error && typeof error.statusCode === 'number' && error.statusCode >= 400 && error.statusCode < 500
  );
}

/** Without the query, which may hold anything. */
function pathOf(request: FastifyRequest): string {
  return request.url.split('?', 1)[0] ?? '';
}
