/** RFC 9457: every error of the API is one of these. `type` is stable: callers match on it. */
import type { FastifyReply } from 'fastify';
import type { Rejection } from '../domain/order.js';
import type { Problem } from './schemas.js';

const KINDS = {
  'invalid-request': { status: 400, title: 'The request is not valid' },
  'malformed-json': { status: 400, title: 'The body is not JSON' },
  'not-found': { status: 404, title: 'There is no such resource' },
  'order-unknown': { status: 404, title: 'There is no such order' },
  'order-exists': { status: 409, title: 'The order exists already' },
  'transition-refused': { status: 409, title: "The order's status does not allow this" },
  'amount-mismatch': { status: 409, title: 'The amount paid is not the total of the order' },
  'paid-otherwise': { status: 409, title: 'The order is paid by another transaction' },
  'payment-known': { status: 409, title: 'The transaction number belongs to another payment' },
  'precondition-failed': { status: 412, title: 'The order has changed' },
  'body-too-large': { status: 413, title: 'The body is too large' },
  'uri-too-long': { status: 414, title: 'The URI is too long' },
  'unsupported-media-type': { status: 415, title: 'The body must be application/json' },
  'idempotency-key-reused': { status: 422, title: 'The idempotency key belongs to another request' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  'internal-error': { status: 500, title: 'Something is broken in the service' },
  unavailable: { status: 503, title: 'The service cannot do this now' },
} as const satisfies Record<string, { status: number; title: string }>;

export type ProblemKind = keyof typeof KINDS;
export type ProblemField = NonNullable<Problem['errors']>[number];

export function problem(kind: ProblemKind, detail: string, errors?: readonly ProblemField[]): Problem {
  const { status, title } = KINDS[kind];
  return {
    type: `urn:nightporter:problem:${kind}`,
    title,
    status,
    detail,
    ...(errors === undefined ? {} : { errors: [...errors] }),
  };
}

export function sendProblem(reply: FastifyReply, answer: Problem): FastifyReply {
  if (answer.status === 503) reply.header('retry-after', '1');
  // Written out here, since a response schema belongs to a route and this also answers where there is none.
  return reply
    .code(answer.status)
    .type('application/problem+json; charset=utf-8')
    .serializer(JSON.stringify)
    .send(answer);
}

export function rejectionProblem(orderId: string, rejection: Rejection): Problem {
  const order = `order ${JSON.stringify(orderId)}`;
  switch (rejection.reason) {
    case 'order-unknown':
      return problem('order-unknown', `${order} does not exist`);
    case 'order-exists':
      return problem('order-exists', `${order} exists already; orderId must be new`, [
        { pointer: '#/orderId', detail: 'is taken' },
      ]);
    case 'transition':
      return problem('transition-refused', `${order} is ${rejection.status}: it cannot ${VERBS[rejection.command]}`);
    case 'amount-mismatch':
      return problem(
        'amount-mismatch',
        `${order} costs ${rejection.expectedMinor} minor units, not ${rejection.givenMinor}`,
        [{ pointer: '#/amountMinor', detail: `must be ${rejection.expectedMinor}, or left out` }],
      );
    case 'paid-otherwise':
      return problem('paid-otherwise', `${order} is paid by transaction ${JSON.stringify(rejection.transactionId)}`, [
        { pointer: '#/transactionId', detail: 'is another transaction' },
      ]);
    case 'payment-known':
      return problem(
        'payment-known',
        `transaction ${JSON.stringify(rejection.transactionId)} has come before with another order, amount or currency`,
      );
  }
}

const VERBS = {
  create: 'be created',
  pay: 'be paid',
  'receive-payment': 'take a payment',
  cancel: 'be cancelled',
  complete: 'be completed',
};
