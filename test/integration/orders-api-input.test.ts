import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleOrder, startOrdersApi, type OrdersApi } from './orders-api.support.js';

let api: OrdersApi;
let existing: string;
beforeAll(async () => {
  api = await startOrdersApi();
  existing = String((await api.post('/orders', sampleOrder)).body['orderId']);
});
afterAll(() => api.close());

const line = { productId: 'apple', quantity: 1, unitPriceMinor: 1 };
const withLine = (fields: object): string => JSON.stringify({ ...sampleOrder, lines: [{ ...line, ...fields }] });
const withField = (fields: object): string => JSON.stringify({ ...sampleOrder, ...fields });
/** JSON text around a value that JSON.stringify would not write. */
const withQuantity = (text: string): string => withLine({ quantity: 'HERE' }).replace('"HERE"', text);
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;

interface BadInput {
  readonly path?: string;
  readonly body: string | Buffer;
  readonly headers?: Record<string, string>;
  readonly status: number;
  /** What the problem must name. */
  readonly names: string;
}

const invalid = (body: string, names: string): BadInput => ({ body, status: 400, names });

const BAD_INPUTS: Record<string, BadInput> = {
  'no body': { body: '', status: 400, names: '#' },
  'malformed JSON': { body: '{"customerId":', status: 400, names: 'malformed-json' },
  'text that is not UTF-8': { body: Buffer.from([0x7b, 0xff, 0x7d]), status: 400, names: 'not UTF-8' },
  'an array for an object': invalid('[]', '#'),
  null: invalid('null', '#'),
  'an unknown field': invalid(withField({ coupon: 'x' }), '#/coupon'),
  'an unknown field in a line': invalid(withLine({ colour: 'red' }), '#/lines/0/colour'),
  'a missing field': invalid(withField({ customerId: undefined }), '#/customerId'),
  'a number for a string': invalid(withField({ customerId: 5 }), '#/customerId'),
  'a string for a number': invalid(withLine({ quantity: '1' }), '#/lines/0/quantity'),
  'an empty string': invalid(withField({ customerId: '' }), '#/customerId'),
  'a customer id of 201 characters': invalid(withField({ customerId: 'x'.repeat(201) }), '#/customerId'),
  'no lines': invalid(withField({ lines: [] }), '#/lines'),
  '101 lines': invalid(withField({ lines: Array.from({ length: 101 }, () => line) }), '#/lines'),
  'quantity 0': invalid(withLine({ quantity: 0 }), '#/lines/0/quantity'),
  'a negative price': invalid(withLine({ unitPriceMinor: -1 }), '#/lines/0/unitPriceMinor'),
  'a fraction of a cent': invalid(withLine({ unitPriceMinor: 0.5 }), '#/lines/0/unitPriceMinor'),
  'a total beyond exact integers': invalid(
    withLine({ quantity: 1_000_000, unitPriceMinor: 100_000_000_000 }),
    '#/lines',
  ),
  'a currency in small letters': invalid(withField({ currency: 'eur' }), '#/currency'),
  'the integer 2^53+1': invalid(withQuantity('9007199254740993'), '#/lines/0/quantity'),
  'the number 1e400': invalid(withQuantity('1e400'), '#/lines/0/quantity'),
  'the number -0': invalid(withLine({ unitPriceMinor: 'HERE' }).replace('"HERE"', '-0'), '#/lines/0/unitPriceMinor'),
  'the key __proto__': invalid(
    withLine({}).replace('"quantity"', '"__proto__":{"x":1},"quantity"'),
    '#/lines/0/__proto__',
  ),
  'the key constructor': invalid(withField({ constructor: { prototype: {} } }), '#/constructor'),
  'the key $set': invalid(withField({ $set: { totalMinor: 0 } }), '#/$set'),
  'a key with a dot': invalid(withField({ 'lines.0.quantity': 5 }), '#/lines.0.quantity'),
  'an operator for a string': invalid(withField({ customerId: { $ne: null } }), '#/customerId'),
  'an empty object for a string': invalid(withField({ customerId: {} }), '#/customerId'),
  'a lone surrogate': invalid(withField({ customerId: 'HERE' }).replace('HERE', '\\ud800'), '#/customerId'),
  'a lone surrogate in a key': invalid(withField({ HERE: 1 }).replace('HERE', '\\ud800'), '#/\uFFFD'),
  'a control character': invalid(withField({ customerId: 'a\nb' }), '#/customerId'),
  NUL: invalid(withField({ customerId: 'a\0b' }), '#/customerId'),
  'nesting of 300 levels': invalid(withField({ customerId: 'HERE' }).replace('"HERE"', nested(300)), '#/customerId'),
  'nesting of 40,000 levels': invalid(
    withField({ customerId: 'HERE' }).replace('"HERE"', '['.repeat(40_000) + ']'.repeat(40_000)),
    '#/customerId',
  ),
  'an order id that is a path segment': invalid(withField({ orderId: '..' }), '#/orderId'),
  'an order id with a line break': invalid(withField({ orderId: 'a\r\nb' }), '#/orderId'),
  'an order id of 201 characters': invalid(withField({ orderId: 'x'.repeat(201) }), '#/orderId'),
  'text instead of JSON': {
    body: 'hello',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    names: 'application/json',
  },
  'a form': {
    body: 'a=b',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    names: 'application/json',
  },
  'a media type that is none': {
    body: '{}',
    headers: { 'content-type': 'json' },
    status: 415,
    names: 'application/json',
  },
  'a body over the limit': {
    body: withField({ customerId: 'x'.repeat(262_144) }),
    status: 413,
    names: 'body-too-large',
  },
  'a body over 4 MiB': { body: withField({ customerId: 'x'.repeat(4_300_000) }), status: 413, names: 'body-too-large' },
  'a body near 16 MB': {
    body: withField({ customerId: 'x'.repeat(15_900_000) }),
    status: 413,
    names: 'body-too-large',
  },
  'an idempotency key of 256 characters': {
    ...invalid(withField({}), 'idempotency-key'),
    headers: { 'idempotency-key': 'x'.repeat(256) },
  },
  'payment of an unknown order': {
    path: '/orders/nobody/pay',
    body: '{"transactionId":"t"}',
    status: 404,
    names: 'nobody',
  },
  'payment without transaction number': {
    path: '/orders/EXISTING/pay',
    body: '{}',
    status: 400,
    names: '#/transactionId',
  },
  'payment of another amount': {
    path: '/orders/EXISTING/pay',
    body: '{"transactionId":"t","amountMinor":124}',
    status: 409,
    names: '#/amountMinor',
  },
  'cancellation for a reason of 1,001 characters': {
    path: '/orders/EXISTING/cancel',
    body: JSON.stringify({ reason: 'x'.repeat(1001) }),
    status: 400,
    names: '#/reason',
  },
  'completion of an unpaid order': { path: '/orders/EXISTING/complete', body: '{}', status: 409, names: 'CREATED' },
  'completion with an unknown field': {
    path: '/orders/EXISTING/complete',
    body: '{"force":true}',
    status: 400,
    names: '#/force',
  },
  'an entity tag without quotes': {
    path: '/orders/EXISTING/pay',
    body: '{"transactionId":"t"}',
    headers: { 'if-match': '1' },
    status: 400,
    names: 'if-match',
  },
  'an unknown command': { path: '/orders/EXISTING/refund', body: '{}', status: 404, names: '/refund' },
};

describe('bad input', () => {
  it.each(Object.entries(BAD_INPUTS))('%s is refused with a reason, and nothing is written', async (_name, input) => {
    const before = await api.documents();
    const path = (input.path ?? '/orders').replace('EXISTING', existing);
    const answer = await api.postRaw(path, input.body, input.headers);
    expect(answer.status).toBe(input.status);
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect(answer.body).toMatchObject({
      status: input.status,
      type: expect.stringMatching(/^urn:nightporter:problem:/),
      title: expect.any(String),
    });
    expect(JSON.stringify(answer.body)).toContain(input.names);
    expect(await api.documents()).toBe(before);
  });

  it('of 16 MB leaves the next order alone', async () => {
    await api.postRaw('/orders', withField({ customerId: 'x'.repeat(15_900_000) }));
    expect((await api.post('/orders', sampleOrder)).status).toBe(201);
  });

  it('does not make an answer that grows with it', async () => {
    const fields = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, index) => [`field ${index} ${'x'.repeat(20)}`, 1]),
    );
    const answer = await api.postRaw('/orders', withField(fields));
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body).length).toBeLessThan(10_000);
  });
});

describe('an order id', () => {
  it.each([
    'with spaces',
    'a/b',
    'a:b',
    'x'.repeat(200),
    '🦉'.repeat(100),
    'ünïcödé',
    '%2F%00',
    '"quotes"\\',
    '$set',
    'a.b',
    '__proto__',
    'null',
  ])('%s is found again by key, with a message group that the broker takes', async (orderId) => {
    const created = await api.post('/orders', { ...sampleOrder, orderId });
    expect([created.status, created.body['orderId']]).toEqual([201, orderId]);
    const place = created.headers.get('location') ?? '';
    expect((await api.get(place)).body).toEqual(created.body);
    const transactionId = `ü 🦉 ${randomUUID()}`;
    expect((await api.post(`${place}/pay`, { transactionId })).status).toBe(200);
    const events = await api.outbox.find({ aggregateId: orderId }, { sort: { aggregateVersion: 1 } }).toArray();
    expect(events.map(({ eventType }) => eventType)).toEqual(['OrderCreated', 'OrderPaid']);
    expect(events[1]?.payload).toEqual({ transactionId, amountMinor: 125, currency: 'EUR' });
    expect(new Set(events.map(({ eventKey }) => eventKey)).size).toBe(1);
    expect(Buffer.byteLength(events[0]!.eventKey)).toBeLessThanOrEqual(63);
  });
});
