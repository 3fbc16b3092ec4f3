/** RFC 9457: every error of a service is one of these. `type` is stable: callers match on it. */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import type { AnswerHeaders } from './answer-headers.js';

export const problemAnswer = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  detail: z.string(),
  /** The code of the error behind it, where callers act on it. */
  code: z.string().optional(),
  errors: z
    .array(
      z.object({
        pointer: z.string().optional(),
        parameter: z.string().optional(),
        header: z.string().optional(),
        detail: z.string(),
      }),
    )
    .optional(),
});

export type Problem = z.infer<typeof problemAnswer>;
export type ProblemField = NonNullable<Problem['errors']>[number];

export type ProblemKinds = Readonly<Record<string, { readonly status: number; readonly title: string }>>;

/** What every service may answer. */
const COMMON = {
  'invalid-request': { status: 400, title: 'The request is not valid' },
  'malformed-json': { status: 400, title: 'The body is not JSON' },
  'not-found': { status: 404, title: 'There is no such resource' },
  'body-too-large': { status: 413, title: 'The body is too large' },
  'uri-too-long': { status: 414, title: 'The URI is too long' },
  'unsupported-media-type': { status: 415, title: 'The body must be application/json' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  'internal-error': { status: 500, title: 'Something is broken in the service' },
  unavailable: { status: 503, title: 'The service cannot do this now' },
} as const satisfies ProblemKinds;

export type ProblemOf<Kind extends string> = (kind: Kind, detail: string, errors?: readonly ProblemField[]) => Problem;

/** Makes the problems of a service: the common ones, and kinds of its own. */
export function defineProblems<const Own extends ProblemKinds>(
  own: Own,
): ProblemOf<keyof typeof COMMON | (keyof Own & string)> {
  const kinds: Record<keyof typeof COMMON | keyof Own, ProblemKinds[string]> = { ...COMMON, ...own };
  return (kind, detail, errors) => {
    const { status, title } = kinds[kind];
    return {
      type: `urn:nightporter:problem:${kind}`,
      title,
      status,
      detail,
      ...(errors === undefined ? {} : { errors: [...errors] }),
    };
  };
}

export const commonProblem = defineProblems({});

export function sendProblem(reply: FastifyReply, answer: Problem): FastifyReply {
  if (answer.status === 503) reply.header('retry-after', '1');
  // Written out here, since a response schema belongs to a route and this also answers where there is none.
  return reply
    .code(answer.status)
    .type('application/problem+json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(answer);
}

function problems(description: string, { example, retryAfter }: { example: Problem; retryAfter: string }) {
  const schema = problemAnswer.meta({ examples: [example] });
  const headers = { 'Retry-After': { type: 'integer', description: retryAfter } } as const satisfies AnswerHeaders;
  return { content: { 'application/problem+json': { schema } }, description, headers };
}

/** The answers that every route may give. */
export const problemAnswers = {
  '4xx': problems('Refused; nothing was written.', {
    example: commonProblem('invalid-request', 'the request is not valid in 1 place', [
      { pointer: '#/quantity', detail: 'must be 1 or more' },
    ]),
    retryAfter: 'With 429: seconds to wait.',
  }),
  '5xx': problems('Not carried out, or not known to be: look, then try again.', {
    example: commonProblem('unavailable', 'the database did not answer'),
    retryAfter: 'With 503: seconds to wait at least.',
  }),
};
