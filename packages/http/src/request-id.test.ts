import { createLogger } from '@nightporter/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHttpApp } from './app.js';

let app: Awaited<ReturnType<typeof createHttpApp>>;

beforeAll(async () => {
  app = await createHttpApp({
    service: 'sample',
    title: 'Sample',
    description: 'A sample.',
    logger: createLogger({ name: 'sample', level: 'silent' }),
    checks: {},
    requestsPerMinuteMax: 20,
    bodyBytesMax: 1_000,
    errorProblem: () => null,
  });
  app.get('/things/:id', ({ id }) => ({ id }));
  app.get('/broken', () => {
    throw new Error('broken');
  });
});
afterAll(() => app.close());

describe('X-Request-Id', () => {
  it('is taken over from the request, and comes back with the answer', async () => {
    const answer = await app.inject({ url: '/things/1', headers: { 'x-request-id': 'order-42:a.b_c' } });
    expect(answer.headers['x-request-id']).toBe('order-42:a.b_c');
    expect(answer.json()).toEqual({ id: 'order-42:a.b_c' });
  });

  it.each([
    ['has none', {}],
    ['has one that cannot be written anywhere', { 'x-request-id': 'a b' }],
    ['has one that is too long', { 'x-request-id': 'a'.repeat(129) }],
  ])('is made where the request %s', async (_name, headers) => {
    const answer = await app.inject({ url: '/things/1', headers });
    expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });

  it.each([
    ['a handler that fails', '/broken', 500],
    ['a URL that cannot be decoded', '/things/%', 400],
    ['a request for what does not exist', '/nothing', 404],
  ])('comes back with the answer to %s', async (_name, url, status) => {
    const answer = await app.inject({ url, headers: { 'x-request-id': 'mine' } });
    expect(answer).toMatchObject({ statusCode: status, headers: { 'x-request-id': 'mine' } });
  });

  it('comes back with the answer to an address that sends too many requests', async () => {
    for (let request = 0; request < 20; request += 1) await app.inject('/things/1');
    const answer = await app.inject({ url: '/things/1', headers: { 'x-request-id': 'mine' } });
    expect(answer).toMatchObject({ statusCode: 429, headers: { 'x-request-id': 'mine' } });
  });
});
