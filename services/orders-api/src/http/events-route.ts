import { problemAnswers, sendProblem } from '@nightporter/http';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { OrderEvents } from '../order-events.js';
import { rejectionProblem } from './problems.js';
import * as schemas from './schemas.js';

/** Where each event of an order is: for whoever asks "I have paid, so why has nothing been sent?" */
export const eventsRoute: FastifyPluginCallbackZod<{ events: OrderEvents }> = (app, { events }, done) => {
  const eventsSchema = {
    tags: ['orders'],
    summary: 'Reads the events of an order: published or not, and what each consumer group made of them',
    params: schemas.orderParams,
    querystring: schemas.eventsQuery,
    response: { 200: schemas.eventsAnswer, ...problemAnswers },
  };
  app.get('/orders/:orderId/events', { schema: eventsSchema }, async (request, reply) => {
    const { orderId } = request.params;
    const { limit, cursor = 0 } = request.query;
    const page = await events.read(orderId, { afterVersion: cursor, limit });
    if (page === null) return sendProblem(reply, rejectionProblem(orderId, { reason: 'order-unknown' }));
    const { next, notKnown } = page;
    return reply.send({
      events: page.events,
      next: next === null ? null : schemas.encodeCursor(String(next)),
      notKnown,
    });
  });
  done();
};
