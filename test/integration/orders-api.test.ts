import { createCatalogue, ordersCatalogue } from '@nightporter/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOrder, startOrdersApi, type Answer, type OrdersApi } from './orders-api.support.js';

let api: OrdersApi;
beforeAll(async () => {
  api = await startOrdersApi();
});
afterAll(() => api.close());

async function newOrder(): Promise<string> {
  const { status, body } = await api.post('/orders', sampleOrder);
  expect(status).toBe(201);
  return String(body['orderId']);
}

async function eventsOf(orderId: string) {
  return api.outbox.find({ aggregateId: orderId }, { sort: { aggregateVersion: 1 } }).toArray();
}

function statuses(answers: readonly Answer[]): readonly number[] {
  return answers.map(({ status }) => status).toSorted((a, b) => a - b);
}

describe('a command', () => {
  it('writes the order and its event together, with the trace of the request', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const { status, body, headers } = await api.post('/orders', sampleOrder, { traceparent });
    expect([status, headers.get('etag')]).toEqual([201, '"1"']);
    expect(await api.orders.findOne({ _id: String(body['orderId']) })).toMatchObject({
      version: 1,
      status: 'CREATED',
      totalMinor: 125,
    });
    const [event, ...more] = await eventsOf(String(body['orderId']));
    expect(more).toEqual([]);
    expect(event).toMatchObject({
      source: 'orders',
      aggregateType: 'order',
      aggregateVersion: 1,
      eventType: 'OrderCreated',
      topic: 'orders-events',
      status: 'PENDING',
      payload: { ...sampleOrder, totalMinor: 125 },
      headers: { traceparent },
    });
  });

  it('gives the versions 1, 2, 3 to the events of an order, and the order the last of them', async () => {
    const id = await newOrder();
    expect((await api.post(`/orders/${id}/pay`, { transactionId: `t1 of ${id}`, amountMinor: 125 })).status).toBe(200);
    const completed = await api.post(`/orders/${id}/complete`, {});
    expect(completed.body).toMatchObject({
      version: 3,
      status: 'COMPLETED',
      payment: { transactionId: `t1 of ${id}`, amountMinor: 125 },
    });
    const events = await eventsOf(id);
    expect(events.map(({ aggregateVersion, eventType }) => `${aggregateVersion} ${eventType}`)).toEqual([
      '1 OrderCreated',
      '2 OrderPaid',
      '3 OrderCompleted',
    ]);
    expect((await api.get(`/orders/${id}`)).body).toEqual(completed.body);
  });

  it('needs no body where it has nothing to say', async () => {
    const id = await newOrder();
    expect((await api.postRaw(`/orders/${id}/cancel`, '')).body).toMatchObject({
      status: 'CANCELLED',
      cancellation: { reason: 'not given' },
    });
  });

  it('is rolled back with its order when its event cannot be written', async () => {
    const withoutPaid = createCatalogue(ordersCatalogue.events.filter(({ type }) => type !== 'OrderPaid'));
    const broken = await startOrdersApi({ catalogue: withoutPaid });
    const { body } = await broken.post('/orders', sampleOrder);
    const answer = await broken.post(
      `/orders/${String(body['orderId'])}/pay`,
      { transactionId: 't1' },
      { 'idempotency-key': 'k' },
    );
    expect(answer.status).toBe(500);
    expect(await broken.orders.findOne({})).toMatchObject({ version: 1, status: 'CREATED', payment: null });
    expect([await broken.outbox.countDocuments(), await broken.idempotencyKeys.countDocuments()]).toEqual([1, 0]);
    await broken.close();
  });

  it('that repeats a payment with the same transaction number changes nothing, and another payment is refused', async () => {
    const id = await newOrder();
    await api.post(`/orders/${id}/pay`, { transactionId: `t1 of ${id}` });
    const again = await api.post(`/orders/${id}/pay`, { transactionId: `t1 of ${id}` });
    expect([again.status, again.body['version']]).toEqual([200, 2]);
    const other = await api.post(`/orders/${id}/pay`, { transactionId: `t2 of ${id}` });
    expect([other.status, other.body['type']]).toEqual([409, 'urn:nightporter:problem:paid-otherwise']);
    expect(await eventsOf(id)).toHaveLength(2);
  });

  it('finds its order at contiguous versions and never fails when twenty come at once', async () => {
    const id = await newOrder();
    const commands = Array.from({ length: 20 }, (_, index) => {
      if (index % 4 === 0) return api.post(`/orders/${id}/pay`, { transactionId: `t${index} of ${id}` });
      if (index % 4 === 1) return api.post(`/orders/${id}/cancel`, { reason: 'too many cooks' });
      return index % 4 === 2
        ? api.post(`/orders/${id}/complete`, {})
        : api.post(`/orders/${id}/pay`, { transactionId: `t0 of ${id}` });
    });
    const answers = await Promise.all(commands);
    expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([]);
    const events = await eventsOf(id);
    expect(events.map(({ aggregateVersion }) => aggregateVersion)).toEqual(events.map((_, index) => index + 1));
    const order = await api.orders.findOne({ _id: id });
    expect(order?.version).toBe(events.length);
    expect(['COMPLETED', 'CANCELLED']).toContain(order?.status);
  });
});

describe('an idempotency key', () => {
  it('gives a repeat the first answer and adds no event', async () => {
    const id = await newOrder();
    const pay = () =>
      api.post(`/orders/${id}/pay`, { transactionId: `t1 of ${id}` }, { 'idempotency-key': `pay ${id}` });
    const first = await pay();
    await api.post(`/orders/${id}/complete`, {});
    const second = await pay();
    expect([second.status, second.body, second.headers.get('etag')]).toEqual([200, first.body, '"2"']);
    expect([first.headers.get('idempotency-replayed'), second.headers.get('idempotency-replayed')]).toEqual([
      null,
      'true',
    ]);
    expect(await eventsOf(id)).toHaveLength(3);
  });

  it('gives a repeat also a first refusal', async () => {
    const id = await newOrder();
    const complete = () => api.post(`/orders/${id}/complete`, {}, { 'idempotency-key': `complete ${id}` });
    const first = await complete();
    expect(first.status).toBe(409);
    await api.post(`/orders/${id}/pay`, { transactionId: `t1 of ${id}` });
    const second = await complete();
    expect([second.status, second.body]).toEqual([409, first.body]);
  });

  it('counts fields in another order as the same request', async () => {
    const id = await newOrder();
    const key = { 'idempotency-key': `order of fields ${id}` };
    await api.postRaw(`/orders/${id}/pay`, `{"transactionId":"t of ${id}","amountMinor":125}`, key);
    expect(
      (await api.postRaw(`/orders/${id}/pay`, `{"amountMinor":125,"transactionId":"t of ${id}"}`, key)).status,
    ).toBe(200);
  });

  it('is refused with another body, on another order, and on another command', async () => {
    const [one, other] = [await newOrder(), await newOrder()];
    const key = { 'idempotency-key': `used for ${one}` };
    expect((await api.post(`/orders/${one}/cancel`, { reason: 'a' }, key)).status).toBe(200);
    const before = await api.documents();
    const answers = [
      await api.post(`/orders/${one}/cancel`, { reason: 'b' }, key),
      await api.post(`/orders/${other}/cancel`, { reason: 'a' }, key),
      await api.post(`/orders/${one}/complete`, {}, key),
      await api.post('/orders', sampleOrder, key),
      await api.post(`/orders/${one}/cancel`, { reason: 'a' }, { ...key, 'if-match': '"1"' }),
    ];
    expect(statuses(answers)).toEqual([422, 422, 422, 422, 422]);
    expect(answers[0]?.body).toMatchObject({
      type: 'urn:nightporter:problem:idempotency-key-reused',
      errors: [{ header: 'idempotency-key' }],
    });
    expect(await api.documents()).toBe(before);
  });

  it('creates one order when the same request comes ten times at once', async () => {
    const before = await api.orders.countDocuments();
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => api.post('/orders', sampleOrder, { 'idempotency-key': 'ten at once' })),
    );
    expect(statuses(answers)).toEqual(answers.map(() => 201));
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(await api.orders.countDocuments()).toBe(before + 1);
  });

  it('does not hold up other keys that create the same order at once: one wins, nine are told so', async () => {
    const order = { ...sampleOrder, orderId: 'wanted by ten' };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => api.post('/orders', order, { 'idempotency-key': `wanted ${index}` })),
    );
    expect(statuses(answers)).toEqual([201, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
    expect(await eventsOf(order.orderId)).toHaveLength(1);
  });
});

describe('If-Match', () => {
  it.each([
    ['"1"', 200],
    ['*', 200],
    ['"7", "1"', 200],
    ['"2"', 412],
    ['W/"1"', 412],
    ['"01"', 412],
    ['1', 400],
  ])('%s on an order at version 1 answers %i', async (ifMatch, status) => {
    const id = await newOrder();
    const answer = await api.post(`/orders/${id}/pay`, { transactionId: `t1 of ${id}` }, { 'if-match': ifMatch });
    expect(answer.status).toBe(status);
    if (status === 412) expect(answer.headers.get('etag')).toBe('"1"');
    expect(await eventsOf(id)).toHaveLength(status === 200 ? 2 : 1);
  });

  it('lets one of ten commands pass that all saw the same version', async () => {
    const id = await newOrder();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        api.post(`/orders/${id}/pay`, { transactionId: `t${index} of ${id}` }, { 'if-match': '"1"' }),
      ),
    );
    expect(statuses(answers)).toEqual([200, 412, 412, 412, 412, 412, 412, 412, 412, 412]);
  });
});
