import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOrder, startOrdersApi, type OrdersApi } from './orders-api.support.js';

let api: OrdersApi;
beforeAll(async () => {
  api = await startOrdersApi();
});
afterAll(() => api.close());

const TOTAL = 125;

async function newOrder(): Promise<string> {
  return String((await api.post('/orders', sampleOrder)).body['orderId']);
}

function callback(orderId: string, change: Record<string, unknown> = {}) {
  const paymentTransactionNo = `payment of ${orderId}`;
  return api.post('/payments/callback', {
    orderId,
    paymentTransactionNo,
    amountMinor: TOTAL,
    currency: 'EUR',
    ...change,
  });
}

async function typesOf(orderId: string): Promise<readonly string[]> {
  const events = await api.outbox.find({ aggregateId: orderId }, { sort: { aggregateVersion: 1 } }).toArray();
  return events.map(({ eventType }) => eventType);
}

describe('a callback of the payment provider', () => {
  it('pays the order once, and a repeat gets the same answer and adds no event', async () => {
    const id = await newOrder();
    const first = await callback(id);
    expect([first.status, first.body['outcome']]).toEqual([200, 'applied']);
    const repeats = await Promise.all(Array.from({ length: 5 }, () => callback(id)));
    for (const repeat of repeats) expect([repeat.status, repeat.body]).toEqual([200, first.body]);
    expect(await typesOf(id)).toEqual(['OrderCreated', 'OrderPaid']);
    expect(await api.payments.countDocuments({ orderId: id })).toBe(1);
  });

  it('pays an order however much it comes to', async () => {
    const amountMinor = 90_000 * 100_000_000_000;
    const lines = [{ productId: 'castle', quantity: 90_000, unitPriceMinor: 100_000_000_000 }];
    const id = String((await api.post('/orders', { ...sampleOrder, lines })).body['orderId']);
    const paid = await callback(id, { amountMinor });
    expect([paid.status, paid.body['outcome']]).toEqual([200, 'applied']);
    expect(await api.payments.findOne({ orderId: id })).toMatchObject({ amountMinor });
  });

  it('that comes five times at once pays once', async () => {
    const id = await newOrder();
    const answers = await Promise.all(Array.from({ length: 5 }, () => callback(id)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await typesOf(id)).toEqual(['OrderCreated', 'OrderPaid']);
  });

  it('after a cancellation is taken down and owed back, and its repeat is still answered alike', async () => {
    const id = await newOrder();
    await api.post(`/orders/${id}/cancel`, {});
    const first = await callback(id);
    expect([first.status, first.body['outcome']]).toEqual([200, 'surplus']);
    expect((await callback(id)).body).toEqual(first.body);
    expect(await typesOf(id)).toEqual(['OrderCreated', 'OrderCancelled', 'SurplusPaymentReceived']);
    expect(await api.refunds.find({ orderId: id }).toArray()).toMatchObject([
      { _id: `payment of ${id}`, amountMinor: TOTAL, cause: 'cancelled', state: 'due' },
    ]);
  });

  it('before a cancellation is owed back by the cancellation', async () => {
    const id = await newOrder();
    await callback(id);
    await api.post(`/orders/${id}/cancel`, {});
    expect(await api.refunds.find({ orderId: id }).toArray()).toMatchObject([
      { _id: `payment of ${id}`, amountMinor: TOTAL, cause: 'cancelled-after-payment', state: 'due' },
    ]);
  });

  it('of a second payment, or of the wrong amount, is owed back and leaves the order as it was', async () => {
    const [paidTwice, wrong] = [await newOrder(), await newOrder()];
    await callback(paidTwice);
    expect((await callback(paidTwice, { paymentTransactionNo: `second of ${paidTwice}` })).body['outcome']).toBe(
      'surplus',
    );
    expect((await callback(wrong, { amountMinor: 1 })).body['outcome']).toBe('surplus');
    expect((await api.get(`/orders/${paidTwice}`)).body).toMatchObject({ status: 'PAID', version: 3 });
    expect((await api.get(`/orders/${wrong}`)).body).toMatchObject({ status: 'CREATED', version: 2, payment: null });
    expect(await api.refunds.countDocuments({ orderId: { $in: [paidTwice, wrong] } })).toBe(2);
  });

  it('whose number is another payment is refused and writes nothing', async () => {
    const [one, two] = [await newOrder(), await newOrder()];
    await callback(one);
    const before = await api.documents();
    for (const answer of [
      await callback(two, { paymentTransactionNo: `payment of ${one}` }),
      await callback(one, { amountMinor: TOTAL + 1 }),
    ]) {
      expect([answer.status, answer.body['type']]).toEqual([409, 'urn:nightporter:problem:payment-known']);
    }
    expect(await api.documents()).toBe(before);
  });

  it('for an order that does not exist is answered 404, so that the provider tries again', async () => {
    expect((await callback('nobody')).status).toBe(404);
  });

  it.each([
    [{ currency: 'euro' }, '#/currency'],
    [{ amountMinor: -1 }, '#/amountMinor'],
    [{ amountMinor: undefined }, '#/amountMinor'],
    [{ paymentTransactionNo: '' }, '#/paymentTransactionNo'],
    [{ more: 1 }, '#/more'],
  ])('with %o is refused with the place', async (change, pointer) => {
    const answer = await callback('nobody', change);
    expect([answer.status, (answer.body['errors'] as { pointer: string }[])[0]?.pointer]).toEqual([400, pointer]);
  });
});

describe('the list of orders', () => {
  it('gives each order of a customer once, over pages, while others are added', async () => {
    const customerId = 'customer of the list';
    const place = (index: number) => api.post('/orders', { ...sampleOrder, customerId, orderId: `list ${index}` });
    for (let index = 10; index < 25; index += 1) await place(index);
    const seen: string[] = [];
    let query = `customerId=${encodeURIComponent(customerId)}&limit=4`;
    for (;;) {
      const { status, body } = await api.get(`/orders?${query}`);
      expect(status).toBe(200);
      seen.push(...(body['orders'] as { orderId: string }[]).map(({ orderId }) => orderId));
      if (body['next'] === null) break;
      await place(seen.length);
      query = `customerId=${encodeURIComponent(customerId)}&limit=4&cursor=${body['next'] as string}`;
    }
    expect(seen).toEqual([...new Set(seen)]);
    for (let index = 10; index < 25; index += 1) expect(seen).toContain(`list ${index}`);
  });

  it('tells orders apart by their status', async () => {
    const customerId = 'customer with two';
    const { body } = await api.post('/orders', { ...sampleOrder, customerId });
    await api.post('/orders', { ...sampleOrder, customerId });
    await api.post(`/orders/${String(body['orderId'])}/cancel`, {});
    const listed = await api.get('/orders?customerId=customer%20with%20two&status=CANCELLED');
    expect(listed.body).toMatchObject({ orders: [{ orderId: body['orderId'], status: 'CANCELLED' }], next: null });
  });

  it.each(['limit=0', 'limit=201', 'limit=x', 'status=LOST', 'cursor=%20', 'colour=red'])(
    'refuses %s, naming the parameter',
    async (query) => {
      const { status, body } = await api.get(`/orders?${query}`);
      expect([status, (body['errors'] as { parameter: string }[])[0]?.parameter]).toEqual([400, query.split('=')[0]]);
    },
  );
});

describe('a caller that sends too much', () => {
  it('is answered 429 with the time to wait, and nothing of that request is written', async () => {
    const limited = await startOrdersApi({ requestsPerMinuteMax: 3 });
    try {
      for (let index = 0; index < 3; index += 1) expect((await limited.post('/orders', sampleOrder)).status).toBe(201);
      const refused = await limited.post('/orders', sampleOrder);
      expect([refused.status, refused.body['type']]).toEqual([429, 'urn:nightporter:problem:too-many-requests']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await limited.orders.countDocuments()).toBe(3);
      expect((await limited.get('/readyz')).status).toBe(200);
    } finally {
      await limited.close();
    }
  });
});
