import type { OutboxDocument } from '@nightporter/contracts';
import { startStack, type Stack } from '@nightporter/embedded';
import { CONSUMER_COLLECTIONS, connectMongo } from '@nightporter/mongo';
import { ordersCollections } from '@nightporter/orders-api';
import { receiveOtlp, type OtlpReceiver, type ReceivedSpan } from '@nightporter/testing/receivers';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildPrograms, runService, until, untilReady, type Program, type ServiceName } from './programs.js';

/** The shop on a stack of its own, with a collector for its spans: six processes, and one customer who traces too. */
const TOPICS = ['orders-events', 'inventory-events', 'shipping-events'];
const GROUPS = {
  inventory: ['orders-events'],
  points: ['orders-events'],
  shipping: ['inventory-events'],
  orders: ['inventory-events', 'shipping-events'],
};
const SERVICES = [
  'orders-api',
  'relay',
  'inventory-worker',
  'orders-worker',
  'points-worker',
  'shipping-worker',
] as const satisfies readonly ServiceName[];

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CUSTOMER = '00f067aa0ba902b7';
const ORDER = 'order-1';

let stack: Stack;
let client: MongoClient;
let collector: OtlpReceiver;
let api: string;
const running = new Map<ServiceName, Program>();

beforeAll(async () => {
  buildPrograms(...SERVICES.map((name) => `services/${name}`));
  [stack, collector] = await Promise.all([startStack({}), receiveOtlp()]);
  client = await connectMongo({ uri: stack.mongodb.uri });
  for (const name of TOPICS) await stack.rocketmq.createTopic({ name });
  for (const [name, topics] of Object.entries(GROUPS)) await stack.rocketmq.createGroup({ name, topics });
  const urls = await Promise.all(SERVICES.map((name) => untilReady(start(name))));
  api = urls[0]!;
  await customer('/orders', {
    orderId: ORDER,
    customerId: 'c',
    currency: 'EUR',
    lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }],
  });
  await customer(`/orders/${ORDER}/pay`, { transactionId: 't1' });
  const { orders } = ordersCollections(client.db('orders'));
  await until('the order is completed', async () => (await orders.findOne({ _id: ORDER }))?.status === 'COMPLETED');
  await untilSettled();
});
afterAll(async () => {
  await Promise.all([...running.values()].map((program) => program.destroy()));
  await client.close();
  await Promise.all([stack.stop(), collector.close()]);
});

function start(name: ServiceName): Program {
  const program = runService(name, {
    MONGODB_URI: stack.mongodb.uri,
    ROCKETMQ_ENDPOINTS: stack.rocketmq.endpoints,
    INVISIBLE_MS: '3000',
    LEASE_MS: '7000',
    OUTBOX_NAMESPACES: 'orders.outbox,inventory.outbox,shipping.outbox',
    TOPICS: TOPICS.join(','),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    LOG_LEVEL: 'debug',
    ...(name === 'inventory-worker' ? { STOCK: 'apple=10' } : {}),
    ...(name === 'relay' ? { MONGODB_DB: 'relay' } : {}),
  });
  running.set(name, program);
  return program;
}

/** What the customer does belongs to one span of theirs. */
async function customer(path: string, body: unknown): Promise<void> {
  const response = await fetch(`${api}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', traceparent: `00-${TRACE}-${CUSTOMER}-01` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`${path} answered ${response.status} ${await response.text()}`);
}

const outboxOf = (database: string) => client.db(database).collection<OutboxDocument>('outbox');

async function rows(): Promise<readonly OutboxDocument[]> {
  const all = await Promise.all(['orders', 'inventory', 'shipping'].map((name) => outboxOf(name).find().toArray()));
  return all.flat();
}

/** Every event is settled in every group of its topic, and every span of that has reached the collector. */
async function untilSettled(): Promise<void> {
  await until('every event is settled', async () => {
    const events = await rows();
    const open = Object.entries(GROUPS).map(async ([group, topics]) => {
      const inbox = client.db(group).collection(CONSUMER_COLLECTIONS.inbox);
      return events.filter(({ topic }) => topics.includes(topic)).length - (await inbox.countDocuments({ group }));
    });
    return (await Promise.all(open)).every((count) => count === 0);
  });
  await until('the spans are there', async () => {
    const sent = named(/^send /).map(({ attributes }) => attributes['nightporter.event.id']);
    const applied = Object.keys(GROUPS).map(async (group) => {
      const inbox = client.db(group).collection(CONSUMER_COLLECTIONS.inbox);
      const told = named(/^process /).filter(({ service }) => service === `${group}-worker`);
      return told.length >= (await inbox.countDocuments({ group, outcome: 'applied' }));
    });
    const isWritten = named(/^transaction /).length === 2 && named(/^POST /).length === 2;
    return (
      isWritten && (await rows()).every(({ _id }) => sent.includes(_id)) && (await Promise.all(applied)).every(Boolean)
    );
  });
}

const ofTrace = (): readonly ReceivedSpan[] => collector.spans().filter(({ traceId }) => traceId === TRACE);
const named = (pattern: RegExp): readonly ReceivedSpan[] => ofTrace().filter(({ name }) => pattern.test(name));
const by = (spanId: string | null): ReceivedSpan | undefined => ofTrace().find((span) => span.spanId === spanId);
const parentOf = (span: ReceivedSpan): ReceivedSpan | undefined => by(span.parentSpanId);

describe('one order, from the request to the last service', () => {
  it('is one trace over six processes, in which no span is without its parent', () => {
    expect([...new Set(ofTrace().map(({ service }) => service))].sort()).toEqual([...SERVICES].sort());
    const orphans = ofTrace().filter((span) => span.parentSpanId !== CUSTOMER && parentOf(span) === undefined);
    expect(orphans).toEqual([]);
    const below = ofTrace().filter(({ parentSpanId }) => parentSpanId === CUSTOMER);
    expect(below.map(({ name, kind }) => [name, kind])).toEqual([
      ['POST /orders', 'server'],
      ['POST /orders/:orderId/pay', 'server'],
    ]);
  });

  it('has the transaction below its request, and each event’s send below what wrote the event', async () => {
    for (const transaction of named(/^transaction /)) expect(parentOf(transaction)?.kind).toBe('server');
    const written = new Map((await rows()).map(({ _id, headers }) => [String(_id), headers.traceparent]));
    const sends = named(/^send /);
    expect(new Set(sends.map(({ attributes }) => attributes['nightporter.event.id'])).size).toBe(written.size);
    for (const send of sends) {
      expect(send).toMatchObject({ service: 'relay', kind: 'producer', hasFailed: false });
      const traceparent = written.get(String(send.attributes['nightporter.event.id']));
      expect(traceparent).toBe(`00-${TRACE}-${send.parentSpanId}-01`);
      expect(parentOf(send)?.name).toMatch(/^(transaction|process) /);
    }
  });

  it('has each handling below the very send that brought its event, and one alone that claims its effect', () => {
    const processes = named(/^process /);
    expect(processes.length).toBeGreaterThanOrEqual(6);
    for (const handling of processes) {
      const send = parentOf(handling);
      expect(send?.kind, handling.name).toBe('producer');
      for (const name of ['nightporter.event.id', 'messaging.message.id', 'nightporter.aggregate.version'])
        expect(handling.attributes[name], name).toBe(send?.attributes[name]);
      expect(handling.kind).toBe('consumer');
      expect(handling.links.map(({ spanId }) => spanId)).toContain(send?.parentSpanId);
    }
    const applied = processes.filter(({ attributes }) => attributes['nightporter.outcome'] === 'applied');
    const effects = applied.map(
      ({ attributes }) =>
        `${String(attributes['messaging.consumer.group.name'])} ${String(attributes['nightporter.event.id'])}`,
    );
    expect(new Set(effects).size).toBe(effects.length);
  });

  it('leads from the payment to the completion through every hop', () => {
    const completing = named(/^process shipping-events$/).find(({ service }) => service === 'orders-worker');
    const way: string[] = [];
    for (let span = completing; span !== undefined; span = parentOf(span)) way.push(`${span.service}: ${span.name}`);
    expect(way).toEqual([
      'orders-worker: process shipping-events',
      'relay: send shipping-events',
      'shipping-worker: process inventory-events',
      'relay: send inventory-events',
      'inventory-worker: process orders-events',
      'relay: send orders-events',
      'orders-api: transaction orders',
      'orders-api: POST /orders/:orderId/pay',
    ]);
  });

  it('is named in the log lines of every service that had an event of it in hand', async () => {
    for (const name of ['relay', 'inventory-worker', 'shipping-worker'] as const)
      await running.get(name)!.output(new RegExp(`"traceId":"${TRACE}"`), 5_000);
  });

  it('tells nothing of what the events hold', () => {
    const told = JSON.stringify(ofTrace().map(({ attributes }) => attributes));
    for (const data of ['apple', 'customerId', 'unitPriceMinor']) expect(told).not.toContain(data);
  });
});

describe('an event that is delivered again', () => {
  it('is discarded below its send, and nothing claims its effect a second time', async () => {
    const ofPoints = (pattern: RegExp) => named(pattern).filter(({ service }) => service === 'points-worker');
    const before = ofPoints(/^process /).length;
    const request = { topic: 'orders-events', group: 'points' };
    for (const { queueId, maxOffset, minOffset } of await stack.rocketmq.offsets(request))
      if (maxOffset > minOffset) await stack.rocketmq.rewind({ ...request, queueId, offset: maxOffset - 1 });
    await until('the repeat is told', () => Promise.resolve(ofPoints(/^discard orders-events$/).length > 0));
    const [discard] = ofPoints(/^discard orders-events$/);
    expect(discard).toMatchObject({ attributes: { 'nightporter.outcome': 'duplicate' } });
    expect(parentOf(discard!)).toMatchObject({ kind: 'producer', service: 'relay' });
    expect(ofPoints(/^process /)).toHaveLength(before);
  });
});

describe('a collector that is away', () => {
  it('holds up neither work nor end, and its loss is told once', async () => {
    collector.answer('hang');
    const applied = client.db('inventory').collection(CONSUMER_COLLECTIONS.inbox);
    const ofOrder = { outcome: 'applied', aggregate: /order-2/ };
    await customer('/orders', {
      orderId: 'order-2',
      customerId: 'c',
      currency: 'EUR',
      lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }],
    });
    await until('the event is applied', async () => (await applied.countDocuments(ofOrder)) === 1);
    const worker = running.get('inventory-worker')!;
    worker.signal('SIGTERM');
    const { exit, stdout } = await worker.ended;
    expect(exit, stdout).toBe(0);
    expect(stdout.match(/spans left behind/g)).toHaveLength(1);
  });
});
