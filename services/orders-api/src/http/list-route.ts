import { problemAnswers } from '@nightporter/http';
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod';
import type { Orders } from '../orders.js';
import * as schemas from './schemas.js';

/** Lists orders page by page, in the order of their ids: a stable order, so that no page repeats or skips one. */
export const listRoute: FastifyPluginCallbackZod<{ orders: Orders }> = (app, { orders }, done) => {
  const listSchema = {
    tags: ['orders'],
    summary: 'Lists orders by customer and status, a page at a time',
    querystring: schemas.listQuery,
    response: { 200: schemas.listAnswer, ...problemAnswers },
  };
  app.get('/orders', { schema: listSchema }, async (request) => {
    const { customerId = null, status = null, limit, cursor } = request.query;
    // One more than asked for tells whether there is another page.
    const found = await orders.list({ customerId, status, after: cursor ?? null, limit: limit + 1 });
    const page = found.slice(0, limit);
    const last = page.at(-1);
    return { orders: page, next: found.length > limit && last ? schemas.encodeCursor(last.orderId) : null };
  });
  done();
};
