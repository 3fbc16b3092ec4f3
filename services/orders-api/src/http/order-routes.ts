import { sendProblem } from '@nightporter/http';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import { randomUUID } from 'node:crypto';
import type { OrderCommand } from '../domain/order.js';
import type { Orders } from '../orders.js';
import { commandAnswers, createAnswers, readAnswers } from './answers.js';
import { entityTag } from './entity-tag.js';
import { carryOut, sendOrder, sendUnchanged } from './exchange.js';
import { rejectionProblem } from './problems.js';
import * as schemas from './schemas.js';

const commandSchema = {
  tags: ['orders'],
  params: schemas.orderParams,
  headers: schemas.commandHeaders,
  response: commandAnswers,
};

export const orderRoutes: FastifyPluginCallbackZod<{ orders: Orders }> = (app, { orders }, done) => {
  const createSchema = {
    tags: ['orders'],
    summary: 'Places an order',
    headers: schemas.createHeaders,
    body: schemas.createOrderBody,
    response: createAnswers,
  };
  app.post('/orders', { schema: createSchema }, async (request, reply) => {
    const { orderId: chosen = null, ...content } = request.body;
    const orderId = chosen ?? randomUUID();
    const command: OrderCommand = { kind: 'create', orderId, ...content };
    return carryOut(orders, { request, reply, orderId, command, content: { ...content, orderId: chosen } });
  });

  const getSchema = {
    tags: ['orders'],
    summary: 'Reads an order',
    params: schemas.orderParams,
    response: readAnswers,
  };
  app.get('/orders/:orderId', { schema: getSchema }, async (request, reply) => {
    const order = await orders.find(request.params.orderId);
    if (order === null)
      return sendProblem(reply, rejectionProblem(request.params.orderId, { reason: 'order-unknown' }));
    if (request.headers['if-none-match'] === entityTag(order.version)) return sendUnchanged(reply, order);
    return sendOrder(reply, { status: 200, order });
  });

  app.post(
    '/orders/:orderId/pay',
    { schema: { ...commandSchema, summary: 'Pays an order that calls for it', body: schemas.payOrderBody } },
    async (request, reply) => {
      const { transactionId, amountMinor = null } = request.body;
      const command: OrderCommand = { kind: 'pay', transactionId, amountMinor };
      return carryOut(orders, {
        request,
        reply,
        orderId: request.params.orderId,
        command,
        content: { transactionId, amountMinor },
      });
    },
  );
  app.post(
    '/orders/:orderId/cancel',
    { schema: { ...commandSchema, summary: 'Cancels an order that is not completed', body: schemas.cancelOrderBody } },
    async (request, reply) => {
      const reason = request.body?.reason ?? 'not given';
      const command: OrderCommand = { kind: 'cancel', reason };
      return carryOut(orders, { request, reply, orderId: request.params.orderId, command, content: { reason } });
    },
  );
  app.post(
    '/orders/:orderId/complete',
    { schema: { ...commandSchema, summary: 'Completes a paid order', body: schemas.completeOrderBody } },
    async (request, reply) =>
      carryOut(orders, { request, reply, orderId: request.params.orderId, command: { kind: 'complete' }, content: {} }),
  );
  done();
};
