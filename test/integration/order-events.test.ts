import { ordersApi } from '@nightporter/orders-api';
import { createRetention } from '@nightporter/ledger';
import { connectMongo, createArchiveFolder, OUTBOX_COLLECTIONS } from '@nightporter/mongo';
import { createPointsWorker } from '@nightporter/points-worker';
import { relayService } from '@nightporter/relay-service';
import {
  createLogger,
  loadConfig,
  type CommonSettings,
  type ServiceDefinition,
  type SettingTable,
} from '@nightporter/runtime';
import { namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';

const TOPIC = 'orders-events';
const within = { timeout: 60_000, interval: 100 };
const names = { orders: uniqueName('o'), points: uniqueName('p'), relay: uniqueName('r'), group: uniqueName('g') };

interface EventsAnswer {
  readonly events: readonly {
    readonly version: number;
    readonly event: Readonly<Record<string, unknown>> | null;
    readonly groups: Readonly<Record<string, string>>;
  }[];
  readonly next: string | null;
  readonly notKnown: readonly string[];
}

let client: MongoClient;
let api: string;
/** Where retention keeps archive files. */
let folder: string;
/** What has to be ended, the youngest last. */
const opened: (() => Promise<void>)[] = [];

beforeAll(async () => {
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  opened.push(() => client.close());
  await createTopic({ name: TOPIC });
  // The topic is the catalogue's, and other tests may have left events there: this group begins behind them.
  await createGroup({ name: names.group, topics: [TOPIC] });
  folder = await mkdtemp(join(tmpdir(), 'nightporter-'));
  opened.push(() => rm(folder, { recursive: true, force: true }));
  const port = await freePort();
  await start(ordersApi, { MONGODB_DB: names.orders, PORT: String(port), ARCHIVE_FOLDER: folder });
  api = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  for (const end of opened.reverse()) await end();
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Runs a service in this process, as `runService` would in one of its own. */
async function start<Table extends CommonSettings & SettingTable>(
  service: ServiceDefinition<Table>,
  environment: Record<string, string>,
): Promise<void> {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const addresses = { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints, PORT: '0' };
  const running = await service.start({
    config: loadConfig(service.config, { ...addresses, ...environment }),
    logger: createLogger({ name: service.name, level: 'silent' }),
    signal: new AbortController().signal,
  });
  opened.push(() => running.stop());
}

const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${api}${path}`, { ...init, signal: AbortSignal.timeout(30_000) });

async function post(path: string, body: unknown): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const response = await ask(path, { method: 'POST', headers, body: JSON.stringify(body) });
  expect(response.ok).toBe(true);
}

const eventsOf = async (orderId: string, query = ''): Promise<EventsAnswer> => {
  const response = await ask(`/orders/${encodeURIComponent(orderId)}/events${query}`);
  expect(response.status).toBe(200);
  return (await response.json()) as EventsAnswer;
};

describe('GET /orders/:id/events', () => {
  const orderId = 'o 1/ä';
  const line = { productId: 'apple', quantity: 1, unitPriceMinor: 10 };

  it('tells of each event whether it is published, and what every registered group has made of it', async () => {
    await post('/orders', { orderId, customerId: 'c', currency: 'EUR', lines: [line] });
    await post(`/orders/${encodeURIComponent(orderId)}/pay`, { transactionId: uniqueName('t') });
    const before = await eventsOf(orderId);
    expect(before.next).toBeNull();
    expect(before.events.map(({ version, event, groups }) => ({ version, event, groups }))).toMatchObject([
      {
        version: 1,
        event: { eventType: 'OrderCreated', topic: TOPIC, status: 'PENDING', publishedAt: null },
        groups: {},
      },
      { version: 2, event: { eventType: 'OrderPaid', topic: TOPIC, status: 'PENDING', publishedAt: null }, groups: {} },
    ]);

    const outbox = `${names.orders}.${OUTBOX_COLLECTIONS.outbox}`;
    await start(relayService, { MONGODB_DB: names.relay, OUTBOX_NAMESPACES: outbox, TOPICS: TOPIC });
    const points = { MONGODB_DB: names.points, ORDERS_DB: names.orders, GROUP: names.group };
    await start(createPointsWorker(), { ...points, LEDGER_LAG_MS: '200', LEDGER_SWEEP_EVERY_MS: '500' });
    await vi.waitFor(async () => {
      const { events, notKnown } = await eventsOf(orderId);
      expect(events).toMatchObject([
        { version: 1, event: { status: 'PUBLISHED' }, groups: { [names.group]: 'applied' } },
        { version: 2, event: { status: 'PUBLISHED' }, groups: { [names.group]: 'applied' } },
      ]);
      expect(notKnown).toEqual([]);
      expect(Date.parse(String(events[0]!.event?.['publishedAt']))).toBeGreaterThan(0);
    }, within);
  });

  it('gives them page by page', async () => {
    const first = await eventsOf(orderId, '?limit=1');
    expect(first.events.map(({ version }) => version)).toEqual([1]);
    const second = await eventsOf(orderId, `?limit=1&cursor=${first.next ?? ''}`);
    expect(second.events.map(({ version }) => version)).toEqual([2]);
    expect(second.next).toBeNull();
  });

  it('finds those that retention has moved to files, and says of which it cannot read the file', async () => {
    const destination = { kind: 'files', files: createArchiveFolder(folder) } as const;
    const run = { client, namespace: namespace(`${names.orders}.${OUTBOX_COLLECTIONS.outbox}`), destination };
    const operator = { by: 'ada', reason: 'in a test' };
    const retention = createRetention({ ...run, afterMs: 0, marginMs: 0, pauseMs: 0 });
    expect(await retention.run({ forced: true, operator })).toMatchObject({ rows: 2 });
    expect(await eventsOf(orderId)).toMatchObject({
      events: [
        { version: 1, event: { eventType: 'OrderCreated' }, groups: { [names.group]: 'applied' } },
        { version: 2, event: { eventType: 'OrderPaid' }, groups: { [names.group]: 'applied' } },
      ],
      notKnown: [],
    });
    await rm(folder, { recursive: true });
    const { events, notKnown } = await eventsOf(orderId);
    expect(events.map(({ event }) => event)).toEqual([null, null]);
    expect(notKnown).toEqual([
      expect.stringMatching(/^2 versions from 1 to 2 are not told: .* it is not in the archive\.$/),
      'Which groups read it is not known, since none of these versions can be read.',
    ]);
  });

  it.each([
    ['an order that does not exist', '/orders/nobody/events', 404, 'urn:nightporter:problem:order-unknown'],
    ['a cursor that is none', '/orders/x/events?cursor=%21', 400, 'urn:nightporter:problem:invalid-request'],
    ['a cursor of another list', '/orders/x/events?cursor=YWJj', 400, 'urn:nightporter:problem:invalid-request'],
    ['a page that is too long', '/orders/x/events?limit=201', 400, 'urn:nightporter:problem:invalid-request'],
  ])('answers %s with a problem document', async (_name, path, status, type) => {
    const response = await ask(path);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect(await response.json()).toMatchObject({ type, status });
  });

  it('is in the OpenAPI page, with an example', async () => {
    const page = (await (await ask('/docs/json')).json()) as { paths: Record<string, unknown> };
    expect(JSON.stringify(page.paths['/orders/{orderId}/events'])).toContain('2026-11-30T12:00:00.012Z');
  });
});
