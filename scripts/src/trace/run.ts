import { connectMongo } from '@nightporter/mongo';
import { receiveOtlp, type ReceivedSpan } from '@nightporter/testing/receivers';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchFleet, launchStack } from '../demo/launch.js';
import { poll } from '../demo/poll.js';
import { waitUntilSettled } from '../demo/settle.js';
import { databasesFor } from '../demo/shop.js';
import type { Surroundings } from '../demo/surroundings.js';

const SETTLE_MS = 120_000;
/** Spans come a moment after what they tell of; when none has come for so long, all have. */
const QUIET_MS = 1_500;
const ORDER_ID = 'order-1';
const JSON_HEADERS = { 'content-type': 'application/json' };

/** Runs the whole shop with a collector, has one customer order and pay, and returns every span of that, the customer's among them. */
export async function traceOneOrder(surroundings: Surroundings): Promise<readonly ReceivedSpan[]> {
  const { atEnd, progress, signal } = surroundings;
  const collector = await receiveOtlp();
  atEnd('the collector', () => collector.close());
  const { stack, fleet, databases } = await startShop(collector.endpoint, surroundings);
  const client = await connectMongo({ uri: stack.mongodb.uri, appName: 'trace' });
  atEnd('the connection', () => client.close());
  progress('one customer orders and pays');
  const customer = await orderAndPay(fleet.apiUrl, signal);
  if (!(await waitUntilSettled({ client, databases, limitMs: SETTLE_MS, signal, progress })))
    throw new Error(`not everything was settled within ${SETTLE_MS} ms`);
  const ofOrder = (): readonly ReceivedSpan[] =>
    collector.spans().filter(({ traceId }) => traceId === customer.traceId);
  let seen = { count: 0, sinceMs: performance.now() };
  await poll(
    () => {
      const count = ofOrder().length;
      if (count !== seen.count) seen = { count, sinceMs: performance.now() };
      return Promise.resolve(count > 0 && performance.now() - seen.sinceMs >= QUIET_MS ? true : null);
    },
    { limitMs: SETTLE_MS, signal },
  );
  return [customer, ...ofOrder()];
}

async function startShop(endpoint: string, surroundings: Surroundings) {
  const stack = await launchStack(surroundings);
  const databases = databasesFor(stack.mongodb.owned ? '' : `trace_${Date.now().toString(36)}_`);
  const logFolder = mkdtempSync(join(tmpdir(), 'nightporter-trace-'));
  surroundings.atEnd('the logs', () => {
    rmSync(logFolder, { recursive: true, force: true });
    return Promise.resolve();
  });
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_SCHEDULE_DELAY: '100' };
  const shop = { stack, databases, stock: 'apple=10', logFolder, workerEntry: null, environment };
  return { stack, fleet: await launchFleet(shop, surroundings), databases };
}

/** The customer traces too: one span around both requests. */
async function orderAndPay(apiUrl: string, signal: AbortSignal): Promise<ReceivedSpan> {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  const startMs = nowMs();
  const headers = { ...JSON_HEADERS, traceparent: `00-${traceId}-${spanId}-01` };
  const post = async (path: string, body: unknown): Promise<void> => {
    const response = await fetch(`${apiUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body), signal });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  };
  const lines = [{ productId: 'apple', quantity: 1, unitPriceMinor: 250 }];
  await post('/orders', { orderId: ORDER_ID, customerId: 'customer-1', currency: 'EUR', lines });
  await post(`/orders/${ORDER_ID}/pay`, { transactionId: 'payment-1' });
  return {
    service: 'customer',
    name: 'orders and pays',
    kind: 'client',
    traceId,
    spanId,
    parentSpanId: null,
    startMs,
    endMs: nowMs(),
    attributes: {},
    links: [],
    events: [],
    hasFailed: false,
  };
}

/** As the SDK of the services takes it: the time of day, finer than milliseconds. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
