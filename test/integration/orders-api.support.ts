import { ordersCatalogue, type Catalogue, type OutboxDocument } from '@nightporter/contracts';
import { connectMongo, ensureOutboxCollections } from '@nightporter/mongo';
import {
  buildApp,
  createLedgerOrderEvents,
  createMongoOrders,
  ensureOrdersCollections,
  ORDERS_SOURCE,
  type IdempotencyDocument,
  type OrderDocument,
  type PaymentDocument,
  type RefundDocument,
} from '@nightporter/orders-api';
import { createOutbox } from '@nightporter/outbox';
import { createLogger } from '@nightporter/runtime';
import type { Collection, MongoClient } from 'mongodb';
import { publishedApi } from '../support/openapi.js';
import { sharedStack, uniqueName } from '../support/stack.js';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

/** An orders API of its own on a database of its own, behind a real socket. */
export interface OrdersApi {
  readonly orders: Collection<OrderDocument>;
  readonly payments: Collection<PaymentDocument>;
  readonly refunds: Collection<RefundDocument>;
  readonly outbox: Collection<OutboxDocument>;
  readonly idempotencyKeys: Collection<IdempotencyDocument>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Sends the body as it is. */
  postRaw(path: string, body: string | Buffer, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** How many documents there are in all collections of the database. */
  documents(): Promise<number>;
  close(): Promise<void>;
}

export async function startOrdersApi(
  options: { catalogue?: Catalogue; mongodbUri?: string; commandMs?: number; requestsPerMinuteMax?: number } = {},
): Promise<OrdersApi> {
  const uri = options.mongodbUri ?? sharedStack().mongodbUri;
  const client: MongoClient = await connectMongo({ uri, poolMax: 50 });
  const database = uniqueName('orders');
  await ensureOutboxCollections(client, database);
  await ensureOrdersCollections(client, database);
  const db = client.db(database);
  const app = await buildApp({
    orders: createMongoOrders({
      client,
      database,
      outbox: createOutbox({
        client,
        database,
        source: ORDERS_SOURCE,
        catalogue: options.catalogue ?? ordersCatalogue,
      }),
      idempotencyRetentionMs: 3_600_000,
      commandMs: options.commandMs ?? 8_000,
    }),
    events: createLedgerOrderEvents({ client, database, source: ORDERS_SOURCE }),
    logger: createLogger({ name: 'orders-api', level: 'silent' }),
    checks: {},
    bodyBytesMax: 262_144,
    requestsPerMinuteMax: options.requestsPerMinuteMax ?? 1_000_000,
  });
  const base = await app.listen({ host: '127.0.0.1', port: 0 });
  const api = publishedApi(app);
  const send = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(`${base}${path}`, { ...init, signal: AbortSignal.timeout(30_000) });
    const text = await response.text();
    const answer = { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> };
    // Whatever a test asks for: the answer is one that the OpenAPI page promises.
    const contentType = response.headers.get('content-type');
    api.check({ method: init.method ?? 'GET', url: path }, { ...answer, contentType, headers: response.headers });
    return { ...answer, headers: response.headers };
  };
  const json = { 'content-type': 'application/json' };
  return {
    orders: db.collection('orders'),
    payments: db.collection('payments'),
    refunds: db.collection('refunds'),
    outbox: db.collection('outbox'),
    idempotencyKeys: db.collection('idempotency_keys'),
    post: (path, body, headers) =>
      send(path, { method: 'POST', body: JSON.stringify(body), headers: { ...json, ...headers } }),
    postRaw: (path, body, headers) => send(path, { method: 'POST', body, headers: { ...json, ...headers } }),
    get: (path, headers = {}) => send(path, { headers }),
    documents: async () => {
      const collections = await db.collections();
      const counts = await Promise.all(collections.map((collection) => collection.countDocuments()));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    close: async () => {
      await app.close();
      await db.dropDatabase();
      await client.close();
    },
  };
}

export const sampleOrder = {
  customerId: 'customer-1',
  currency: 'EUR',
  lines: [
    { productId: 'apple', quantity: 3, unitPriceMinor: 25 },
    { productId: 'pear', quantity: 1, unitPriceMinor: 50 },
  ],
};
