import { createHttpApp, type HttpAppOptions } from '@nightporter/http';
import type { FastifyInstance } from 'fastify';
import type { OrderEvents } from '../order-events.js';
import type { Orders } from '../orders.js';
import { errorProblem } from './errors.js';
import { eventsRoute } from './events-route.js';
import { listRoute } from './list-route.js';
import { orderRoutes } from './order-routes.js';
import { paymentRoutes } from './payment-routes.js';

export interface AppOptions extends Omit<HttpAppOptions, 'service' | 'title' | 'description' | 'errorProblem'> {
  readonly orders: Orders;
  readonly events: OrderEvents;
}

const DESCRIPTION =
  'Orders with their events, written in one transaction. Every error is application/problem+json (RFC 9457).';

/** The HTTP application without a listening socket; nothing is read or written before a request. */
export async function buildApp({ orders, events, ...options }: AppOptions): Promise<FastifyInstance> {
  const app = await createHttpApp({
    ...options,
    service: 'orders-api',
    title: 'nightporter orders',
    description: DESCRIPTION,
    errorProblem,
  });
  for (const routes of [orderRoutes, listRoute, paymentRoutes]) await app.register(routes, { orders });
  await app.register(eventsRoute, { events });
  return app;
}
