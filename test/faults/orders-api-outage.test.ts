import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startMongoProxy } from '../integration/mongo-proxy.js';
import { startOwnMongo } from '../integration/mongo-own-server.js';
import { startOrdersApi } from '../integration/orders-api.support.js';
import { sharedStack } from '../support/stack.js';

const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }] };

it('answers 503 while the database is away, to reads and commands alike, and goes on by itself when it is back', async () => {
  const mongodb = await startOwnMongo();
  const api = await startOrdersApi({ mongodbUri: mongodb.uri, commandMs: 1_000 });
  try {
    expect((await api.post('/orders', { ...order, orderId: 'before' })).status).toBe(201);
    await mongodb.kill();
    const [read, command] = await Promise.all([
      api.get('/orders/before'),
      api.post('/orders', { ...order, orderId: 'during' }),
    ]);
    for (const answer of [read, command]) {
      expect(answer.status).toBe(503);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
      expect(answer.headers.get('retry-after')).not.toBeNull();
    }
    await mongodb.restart();
    await expect.poll(async () => (await api.get('/orders/before')).status, { timeout: 20_000 }).toBe(200);
    expect((await api.post('/orders', { ...order, orderId: 'after' })).status).toBe(201);
  } finally {
    await api.close();
    await mongodb.stop();
  }
});

/** The driver alone gives a silent server up after 15 to 20 s. */
const ANSWER_MS = 8_000;

it('answers 503 in its own time, and commits nothing, where the database takes a command and is silent', async () => {
  const proxy = await startMongoProxy(sharedStack().mongodbUri);
  const api = await startOrdersApi({ mongodbUri: proxy.uri, commandMs: 1_000 });
  try {
    expect((await api.post('/orders', { ...order, orderId: 'before' })).status).toBe(201);
    proxy.stall();
    const answered = api.post('/orders', { ...order, orderId: 'during' }).then(({ status }) => status);
    const late = delay(ANSWER_MS, 'late', { ref: false });
    expect(await Promise.race([answered, late])).toBe(503);
    proxy.restore();
    await expect.poll(async () => (await api.get('/orders/before')).status, { timeout: 20_000 }).toBe(200);
    expect((await api.get('/orders/during')).status).toBe(404);
    expect((await api.post('/orders', { ...order, orderId: 'during' })).status).toBe(201);
  } finally {
    proxy.restore();
    await api.close();
    await proxy.close();
  }
});
