import { type Problem, sendProblem, traceOf } from '@nightporter/http';
import type { EventHeaders, JsonValue } from '@nightporter/contracts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Order, OrderCommand } from '../domain/order.js';
import type { CommandOutcome, CommandResult, Orders } from '../orders.js';
import { entityTag, expectedVersionOf } from './entity-tag.js';
import { idempotencyOf } from './idempotency.js';
import { problem, rejectionProblem } from './problems.js';

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly orderId: string;
  readonly command: OrderCommand;
  /** What the caller asked for, as validated: an idempotency key stands for it. */
  readonly content: JsonValue;
}

/** Carries a command out and answers: the same answer for the same outcome, also when it comes out of the idempotency record. */
export async function carryOut(
  orders: Orders,
  { request, reply, orderId, command, content }: Exchange,
): Promise<FastifyReply> {
  const { headers, method, routeOptions } = request;
  const ifMatch = command.kind === 'create' ? undefined : headers['if-match'];
  const key = headers['idempotency-key'];
  const target = `${method} ${routeOptions.url ?? ''} ${command.kind === 'create' ? '' : orderId}`;
  const result = await orders.execute({
    orderId,
    command,
    expected: expectedVersionOf(ifMatch),
    idempotency: idempotencyOf(typeof key === 'string' ? key : undefined, { target, ifMatch, content }),
    headers: eventHeaders(request),
  });
  return answer(reply, { command, orderId, result });
}

function answer(
  reply: FastifyReply,
  { command, orderId, result }: { command: OrderCommand; orderId: string; result: CommandResult },
): FastifyReply | Promise<FastifyReply> {
  if (result.kind === 'key-reused') {
    const detail = 'this key came with another request before; use a new key for a new request';
    return sendProblem(
      reply,
      problem('idempotency-key-reused', detail, [{ header: 'idempotency-key', detail: 'is used' }]),
    );
  }
  if (result.replayed) reply.header('idempotency-replayed', 'true');
  const { outcome } = result;
  if (outcome.kind === 'accepted')
    return sendOrder(reply, { status: command.kind === 'create' ? 201 : 200, order: outcome.order });
  if (outcome.kind === 'stale') reply.header('etag', entityTag(outcome.version));
  return sendProblem(reply, outcomeProblem(orderId, outcome));
}

/** Why a command was not carried out. */
export function outcomeProblem(orderId: string, outcome: Exclude<CommandOutcome, { kind: 'accepted' }>): Problem {
  if (outcome.kind === 'rejected') return rejectionProblem(orderId, outcome.rejection);
  return problem('precondition-failed', `the order is at version ${outcome.version}`, [
    { header: 'if-match', detail: `does not name ${entityTag(outcome.version)}` },
  ]);
}

export function sendOrder(reply: FastifyReply, { status, order }: { status: 200 | 201; order: Order }): FastifyReply {
  if (status === 201) reply.header('location', `/orders/${encodeURIComponent(order.orderId)}`);
  return reply.code(status).header('etag', entityTag(order.version)).send(order);
}

/** The caller has this version already. */
export function sendUnchanged(reply: FastifyReply, order: Order): FastifyReply {
  return reply.code(304).header('etag', entityTag(order.version)).send();
}

/** The trace of the request goes on in the events; the outbox leaves out what is malformed. */
export function eventHeaders(request: FastifyRequest): EventHeaders {
  return { ...traceOf(request), causationId: request.id };
}
