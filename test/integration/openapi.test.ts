import { buildConsole, createOperations } from '@nightporter/console';
import { buildApp, createLedgerOrderEvents } from '@nightporter/orders-api';
import { createLogger } from '@nightporter/runtime';
import { MongoClient } from 'mongodb';
import { expect, it, onTestFinished } from 'vitest';
import { publishedApi } from '../support/openapi.js';

// Nothing here asks it.
const client = new MongoClient('mongodb://127.0.0.1');
const common = {
  logger: createLogger({ name: 'openapi', level: 'silent' as const }),
  checks: {},
  bodyBytesMax: 65_536,
  requestsPerMinuteMax: 1_000,
};
const unused = (): never => {
  throw new Error('the page is read, and nothing else');
};

const consoleOf = (tokens: { readonly ops: string | null; readonly ledger: string | null }) =>
  buildConsole({
    ...common,
    producers: new Map(),
    operations: createOperations(client, { producers: [], relayDatabase: null }),
    liveEveryMs: 1_000,
    tokens,
  });

const services = {
  console: () => consoleOf({ ops: null, ledger: null }),
  'orders-api': () =>
    buildApp({
      ...common,
      orders: { execute: unused, find: unused, findPayment: unused, list: unused },
      events: createLedgerOrderEvents({ client, database: 'orders', source: 'orders' }),
    }),
};

it.each(Object.entries(services))(
  'The OpenAPI page of %s has an example for each body and each answer of each route, also of what is refused, and each fits its schema',
  async (_name, build) => {
    const app = await build();
    onTestFinished(() => app.close());
    await app.ready();
    const api = publishedApi(app);
    expect(api.routes.length).toBeGreaterThan(5);
    expect(api.wrongExamples()).toEqual([]);
    const incomplete = api.routes.filter(({ operation: { responses } }) =>
      ['4XX', '5XX'].some((status) => responses[status]?.content?.['application/problem+json'] === undefined),
    );
    expect(incomplete.map(({ name }) => name)).toEqual([]);
  },
);

const OPS = [{ opsToken: [] }];

it.each([
  ['both tokens', { ops: 'o', ledger: 'l' }, ['opsToken', 'ledgerToken'], OPS, [...OPS, { ledgerToken: [] }]],
  ['one token', { ops: 'o', ledger: null }, ['opsToken'], OPS, OPS],
  ['no token', { ops: null, ledger: null }, [], undefined, undefined],
])(
  'The OpenAPI page of a console with %s says which token each route takes',
  async (_what, tokens, declared, ops, ledger) => {
    const app = await consoleOf(tokens);
    onTestFinished(() => app.close());
    await app.ready();
    const { routes, securitySchemes } = publishedApi(app);
    expect(Object.keys(securitySchemes)).toEqual(declared);
    for (const scheme of Object.values(securitySchemes))
      expect(scheme).toMatchObject({ type: 'http', scheme: 'bearer' });
    const isOfLedger = (name: string) => name.includes(' /v1/producers/');
    expect(routes.filter(({ name }) => isOfLedger(name)).length).toBeGreaterThan(5);
    for (const { name, operation } of routes)
      expect([name, operation.security]).toEqual([name, isOfLedger(name) ? ledger : ops]);
  },
);

it('The OpenAPI page of orders-api has an example for each body that is sent, and each is one that the service takes', async () => {
  const app = await services['orders-api']();
  onTestFinished(() => app.close());
  await app.ready();
  const examples = publishedApi(app).requestExamples();
  expect(examples.map(({ name }) => name).sort()).toEqual([
    'POST /orders',
    'POST /orders/{orderId}/cancel',
    'POST /orders/{orderId}/complete',
    'POST /orders/{orderId}/pay',
    'POST /payments/callback',
  ]);
  for (const { example, name, wrong } of examples) {
    expect(wrong, name).toBeNull();
    const url = name.replace('POST ', '').replace('{orderId}', 'o-1');
    const answer = await app.inject({ method: 'POST', url, payload: example as object });
    // There are no orders here: what comes so far has been taken.
    expect([answer.statusCode, answer.json<{ type: string }>().type], name).toEqual([
      500,
      'urn:nightporter:problem:internal-error',
    ]);
  }
});

it('The OpenAPI page of orders-api names the headers that callers act on', async () => {
  const app = await services['orders-api']();
  onTestFinished(() => app.close());
  await app.ready();
  const { routes } = publishedApi(app);
  const headersOf = (name: string, status: string): readonly string[] =>
    Object.keys(routes.find((route) => route.name === name)?.operation.responses[status]?.headers ?? {}).sort();
  const common = ['ETag', 'Idempotency-Replayed', 'X-Request-Id'];
  expect(headersOf('POST /orders', '201')).toEqual([...common.slice(0, 2), 'Location', 'X-Request-Id']);
  expect(headersOf('POST /orders/{orderId}/pay', '200')).toEqual(common);
  expect(headersOf('POST /orders/{orderId}/pay', '4XX')).toEqual([
    ...common.slice(0, 2),
    'Retry-After',
    'X-Request-Id',
  ]);
  expect(headersOf('GET /orders/{orderId}', '200')).toEqual(['ETag', 'X-Request-Id']);
  expect(headersOf('GET /orders/{orderId}', '304')).toEqual(['ETag', 'X-Request-Id']);
  expect(headersOf('GET /orders', '5XX')).toEqual(['Retry-After', 'X-Request-Id']);
});
