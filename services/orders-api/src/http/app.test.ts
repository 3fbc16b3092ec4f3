import { createLogger } from '@nightporter/runtime';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decide, evolve, type Order } from '../domain/order.js';
import type { Orders } from '../orders.js';
import { buildApp } from './app.js';

/** Orders in memory: this file is about HTTP; transactions are tested on a real database. */
function memoryOrders(): Orders {
  const orders = new Map<string, Order>();
  return {
    execute: ({ orderId, command }) => {
      const before = orders.get(orderId) ?? null;
      const decision = decide(command, before);
      if (decision.kind === 'rejected') {
        return Promise.resolve({
          kind: 'decided',
          outcome: { kind: 'rejected', rejection: decision.rejection },
          replayed: false,
        });
      }
      const after = decision.kind === 'events' ? evolve(before, decision.events[0]) : before!;
      orders.set(orderId, after);
      return Promise.resolve({ kind: 'decided', outcome: { kind: 'accepted', order: after }, replayed: false });
    },
    find: (orderId) => Promise.resolve(orders.get(orderId) ?? null),
    findPayment: () => Promise.resolve(null),
    list: () => Promise.resolve([...orders.values()]),
  };
}

let app: FastifyInstance;
beforeAll(async () => {
  app = await buildApp({
    orders: memoryOrders(),
    events: { read: () => Promise.resolve(null) },
    logger: createLogger({ name: 'test', level: 'silent' }),
    checks: { database: () => 'no primary' },
    bodyBytesMax: 10_000,
    requestsPerMinuteMax: 1_000_000,
  });
});
afterAll(() => app.close());

const body = { customerId: 'c1', currency: 'EUR', lines: [{ productId: 'apple', quantity: 2, unitPriceMinor: 50 }] };

describe('the orders API', () => {
  it('answers a new order with 201, its place, its ETag and security headers', async () => {
    const response = await app.inject({ method: 'POST', url: '/orders', payload: body });
    const order = response.json<Order>();
    expect(response.statusCode).toBe(201);
    expect(response.headers).toMatchObject({
      location: `/orders/${order.orderId}`,
      etag: '"1"',
      'x-content-type-options': 'nosniff',
    });
    expect(order).toMatchObject({ version: 1, status: 'CREATED', totalMinor: 100 });
  });

  it.each(['a b/c:d', 'über%20', '🦉'.repeat(100), 'x'.repeat(200), '%2F', '?#&'])(
    'finds an order again by its id %s',
    async (orderId) => {
      const created = await app.inject({ method: 'POST', url: '/orders', payload: { ...body, orderId } });
      expect(created.statusCode).toBe(201);
      const found = await app.inject({ method: 'GET', url: String(created.headers.location) });
      expect(found.json()).toMatchObject({ orderId });
      const same = await app.inject({
        method: 'GET',
        url: String(created.headers.location),
        headers: { 'if-none-match': '"1"' },
      });
      expect([same.statusCode, same.body]).toEqual([304, '']);
    },
  );

  it('names each field that does not fit', async () => {
    const payload = {
      ...body,
      currency: 'euro',
      lines: [{ productId: '', quantity: 0.5, unitPriceMinor: 1, 'a/b~c': 1 }],
      extra: 1,
    };
    const response = await app.inject({ method: 'POST', url: '/orders', payload });
    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    const pointers = response.json<{ errors: { pointer: string }[] }>().errors.map((field) => field.pointer);
    expect(pointers.toSorted()).toEqual([
      '#/currency',
      '#/extra',
      '#/lines/0/a~1b~0c',
      '#/lines/0/productId',
      '#/lines/0/quantity',
    ]);
  });

  it.each([
    ['an unknown route', { method: 'GET', url: '/nowhere' }, 404],
    ['an unknown method', { method: 'DELETE', url: '/orders' }, 404],
    ['a path that cannot be decoded', { method: 'GET', url: '/orders/%ff' }, 400],
    ['an id that is longer than any', { method: 'GET', url: `/orders/${'x'.repeat(201)}` }, 400],
    ['a path part that is endless', { method: 'GET', url: `/orders/${'x'.repeat(5000)}` }, 414],
  ] as const)('answers %s with a problem document', async (_name, request, status) => {
    const response = await app.inject(request);
    expect(response.statusCode).toBe(status);
    expect(response.headers['content-type']).toContain('application/problem+json');
    expect(response.json()).toMatchObject({ status, type: expect.stringContaining('urn:nightporter:problem:') });
  });

  it('is alive, and says why it is not ready', async () => {
    expect((await app.inject('/livez')).statusCode).toBe(200);
    const ready = await app.inject('/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([503, { status: 'not ready', reasons: ['database: no primary'] }]);
  });

  it('measures requests by the pattern of their route, and never by an id', async () => {
    await app.inject('/orders/one-of-many');
    await app.inject({ method: 'DELETE', url: '/nowhere/one-of-many' });
    const { body: text, headers } = await app.inject('/metrics');
    expect(headers['content-type']).toContain('version=0.0.4');
    expect(text).toMatch(/_count\{[^}]*http_route="\/orders\/:orderId",http_response_status_code="404"[^}]*\} \d/);
    expect(text).toMatch(/_count\{[^}]*http_request_method="DELETE",http_route="unmatched"[^}]*\} \d/);
    expect(text).not.toContain('one-of-many');
    expect(text).toContain('nightporter_ready{service="orders-api"} 0');
  });

  it('describes itself at /docs, in a page that its own security headers let work', async () => {
    const page = await app.inject('/docs/');
    expect(page.statusCode).toBe(200);
    expect(page.headers['content-security-policy']).toContain("script-src 'self'");
    const description = (await app.inject('/docs/json')).json<{ paths: Record<string, unknown> }>();
    expect(Object.keys(description.paths)).toEqual([
      '/orders',
      '/orders/{orderId}',
      '/orders/{orderId}/pay',
      '/orders/{orderId}/cancel',
      '/orders/{orderId}/complete',
      '/payments/callback',
      '/orders/{orderId}/events',
    ]);
  });
});
