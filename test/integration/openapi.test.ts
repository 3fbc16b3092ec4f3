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

const services = {
  console: () =>
    buildConsole({
      ...common,
      producers: new Map(),
      operations: createOperations(client, { producers: [], relayDatabase: null }),
      liveEveryMs: 1_000,
      tokens: { ops: null, ledger: null },
    }),
  'orders-api': () =>
    buildApp({
      ...common,
      orders: { execute: unused, find: unused, findPayment: unused, list: unused },
      events: createLedgerOrderEvents({ client, database: 'orders', source: 'orders' }),
    }),
};

it.each(Object.entries(services))(
  'The OpenAPI page of %s has an example for each answer of each route, also of what is refused, and each fits its schema',
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
