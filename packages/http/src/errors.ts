import { isNightporterError, traceIdOf, type NightporterError } from '@nightporter/protocol';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MalformedJsonError } from './json-body.js';
import { commonProblem, sendProblem, type Problem } from './problems.js';
import { traceOf } from './tracing.js';
import { InvalidRequestError } from './validation.js';

/** What a service makes of an error of nightporter; null is answered as something broken, which tells the caller nothing. */
export type ErrorProblem = (error: NightporterError) => Problem | null;

/** A request that is refused with a problem document. */
export class ProblemError extends Error {
  readonly statusCode: number;
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = 'ProblemError';
    this.statusCode = problem.status;
    this.problem = problem;
  }
}

/** More requests than one address may send; `after` says in words how long to wait. */
export function tooManyRequests(after: string): ProblemError {
  return new ProblemError(
    commonProblem('too-many-requests', `this address sends too many requests; try again in ${after}`),
  );
}

/** Every error and every unknown route becomes a problem document; what nobody expected is logged and tells the caller nothing. */
export function answerErrors(app: FastifyInstance, errorProblem: ErrorProblem): void {
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, commonProblem('not-found', `there is no ${request.method} ${pathOf(request)}`)),
  );
  app.setErrorHandler<FastifyError>((error, request, reply) => answerError(error, { request, reply, errorProblem }));
}

/** Also for errors before routing, such as a URL that cannot be decoded. */
export function answerError(
  error: Error,
  { request, reply, errorProblem }: { request: FastifyRequest; reply: FastifyReply; errorProblem: ErrorProblem },
): FastifyReply {
  const answer = problemOf(error, errorProblem);
  if (answer.status >= 500) {
    const place = { method: request.method, path: pathOf(request), ...traceIdOf(traceOf(request)) };
    request.log.error({ err: error, ...place }, 'request failed');
  }
  return sendProblem(reply, answer);
}

function problemOf(error: Error, errorProblem: ErrorProblem): Problem {
  if (error instanceof InvalidRequestError || error instanceof MalformedJsonError || error instanceof ProblemError)
    return error.problem;
  if (isNightporterError(error)) return errorProblem(error) ?? internal();
  switch (codeOf(error)) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_CTP_INVALID_TYPE':
      return commonProblem('unsupported-media-type', 'send the body as application/json');
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return commonProblem('body-too-large', 'the body is larger than this service reads');
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return commonProblem('uri-too-long', 'a part of the path is longer than any id');
    default:
      return isClientError(error) ? commonProblem('invalid-request', error.message) : internal();
  }
}

function internal(): Problem {
  return commonProblem('internal-error', 'the service has logged what went wrong');
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
