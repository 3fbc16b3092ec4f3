import { createLogger } from '@nightporter/runtime';
import type { FastifyInstance } from 'fastify';
import { MongoClient } from 'mongodb';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Operations } from '../ops/operations.js';
import type { Tokens } from '../tokens.js';
import { buildConsole } from './app.js';

const OPS = 'ops-token-0123456789';
const LEDGER = 'ledger-token-0123456789';

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

const unused = (): never => {
  throw new Error('no request of this file comes so far');
};

/** Without producers: this file is about who is let in, and what is refused. */
async function app(
  tokens: Tokens,
  requestsPerMinuteMax = 1_000,
  deployment: Operations['deployment'] = unused,
): Promise<FastifyInstance> {
  const built = await buildConsole({
    producers: new Map(),
    operations: {
      client: new MongoClient('mongodb://127.0.0.1'),
      deployment,
      home: unused,
      forget: unused,
      deadLetters: unused,
      relay: unused,
      alone: unused,
    },
    liveEveryMs: 20,
    tokens,
    logger: createLogger({ name: 'test', level: 'silent' }),
    checks: {},
    bodyBytesMax: 65_536,
    requestsPerMinuteMax,
  });
  apps.push(built);
  return built;
}

const question = { method: 'GET', url: '/v1/producers/orders/groups/points' } as const;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe('the ops API', () => {
  it('lets nobody in without a token, and says which header is missing', async () => {
    const answer = await (await app({ ops: OPS, ledger: LEDGER })).inject(question);
    expect(answer.statusCode).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(answer.json()).toMatchObject({ errors: [{ header: 'authorization' }] });
  });

  it.each([OPS, LEDGER])('lets a holder of the token %s ask a ledger', async (token) => {
    const answer = await (await app({ ops: OPS, ledger: LEDGER })).inject({ ...question, headers: bearer(token) });
    expect([answer.statusCode, answer.json()]).toEqual([
      404,
      expect.objectContaining({ type: 'urn:nightporter:problem:producer-unknown' }),
    ]);
  });

  it.each([
    ['127.0.0.1:3010', 404],
    ['localhost:3010', 404],
    ['[::1]:3010', 404],
    ['console.example', 421],
    ['127.0.0.1.console.example', 421],
  ])('without tokens, answers %s with %i', async (host, status) => {
    const answer = await (await app({ ops: null, ledger: null })).inject({ ...question, headers: { host } });
    expect(answer.statusCode).toBe(status);
  });

  it.each([
    ['cross-site', 403],
    ['same-site', 403],
    ['same-origin', 404],
    ['none', 404],
  ])('without tokens, answers a page in a browser that is %s with %i', async (site, status) => {
    const headers = { host: '127.0.0.1:3010', 'sec-fetch-site': site };
    expect((await (await app({ ops: null, ledger: null })).inject({ ...question, headers })).statusCode).toBe(status);
  });

  it('reads no body of whoever has no token', async () => {
    const request = { method: 'POST', url: '/v1/producers/orders/ledger/versions' } as const;
    const answer = await (await app({ ops: OPS, ledger: null })).inject({ ...request, payload: 'no JSON at all' });
    expect(answer.statusCode).toBe(401);
  });

  it('refuses what is not a question, naming the place, before it asks any database', async () => {
    const answer = await (
      await app({ ops: OPS, ledger: null })
    ).inject({
      method: 'POST',
      url: '/v1/producers/orders/ledger/versions',
      headers: bearer(OPS),
      payload: { places: [{ aggregate: 'a/b/c', version: 0 }], more: 1 },
    });
    expect(answer.statusCode).toBe(400);
    const pointers = answer.json<{ errors: { pointer: string }[] }>().errors.map(({ pointer }) => pointer);
    expect(pointers.sort()).toEqual(['#/more', '#/places/0/version']);
  });

  it.each([
    '/v1/status',
    '/v1/events',
    '/v1/live',
    '/v1/tail',
    '/v1/relay',
    '/v1/outbox',
    '/v1/groups/points/dead-letters',
    '/v1/doctor',
    '/v1/groups',
  ])('keeps %s from whoever has no token, or one for ledgers alone', async (url) => {
    const built = await app({ ops: OPS, ledger: LEDGER });
    expect((await built.inject(url)).statusCode).toBe(401);
    expect((await built.inject({ url, headers: bearer(LEDGER) })).statusCode).toBe(403);
  });

  it('answers whoever guesses tokens 429, the right one included, and goes on answering other addresses', async () => {
    const built = await app({ ops: OPS, ledger: LEDGER }, 3);
    const ask = (token: string, remoteAddress: string) =>
      built.inject({ ...question, headers: bearer(token), remoteAddress });
    const guesses: number[] = [];
    for (let guess = 0; guess < 3; guess += 1)
      guesses.push((await ask(`guess-${guess}-0123456789`, '10.0.0.1')).statusCode);
    expect(guesses).toEqual([401, 401, 401]);
    // Else a guess that is right would still be told from one that is wrong.
    for (const token of ['guess-3-0123456789', OPS]) {
      const answer = await ask(token, '10.0.0.1');
      expect(answer.statusCode).toBe(429);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(answer.json()).toMatchObject({ type: 'urn:nightporter:problem:too-many-requests' });
    }
    expect((await ask(OPS, '10.0.0.2')).statusCode).toBe(404);
  });

  it('tells whoever follows events that they cannot be read, and tries again, for ten at most', async () => {
    const url = await (await app({ ops: OPS, ledger: null })).listen({ host: '127.0.0.1', port: 0 });
    const follow = async (): Promise<IncomingMessage> => {
      // A connection each, since one that is kept would outlive the test.
      const asked = get(`${url}/v1/tail`, { headers: bearer(OPS), agent: false, signal: AbortSignal.timeout(10_000) });
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      return response;
    };
    const followed = await Promise.all(Array.from({ length: 10 }, follow));
    expect(followed.map(({ statusCode }) => statusCode)).toEqual(Array.from({ length: 10 }, () => 200));
    expect((await follow()).statusCode).toBe(503);
    let text = '';
    const said = /^event: unavailable\ndata: {"reason":"no request of this file comes so far"}$/gm;
    for await (const chunk of followed[0]!) {
      text += String(chunk);
      if ((text.match(said) ?? []).length > 1) break;
    }
    // Whoever leaves makes room for another.
    await expect.poll(async () => (await follow()).statusCode, { timeout: 10_000 }).toBe(200);
  });

  it.each(['live', 'tail'])('closes while somebody follows /v1/%s and reads nothing', async (route) => {
    const built = await app({ ops: OPS, ledger: null });
    const url = await built.listen({ host: '127.0.0.1', port: 0 });
    const followed = await fetch(`${url}/v1/${route}`, { headers: bearer(OPS), signal: AbortSignal.timeout(15_000) });
    expect(followed.status).toBe(200);
    await built.close();
    expect(await followed.text()).toMatch(/^(event: unavailable\n.*\n\n)*$/);
  });

  it.each(['live', 'tail'])('answers at /v1/%s before anything is read, and closes meanwhile', async (route) => {
    const isSilent = (): Promise<never> => new Promise(() => undefined);
    const built = await app({ ops: OPS, ledger: null }, 1_000, isSilent);
    const url = await built.listen({ host: '127.0.0.1', port: 0 });
    const asked = get(`${url}/v1/${route}`, {
      headers: bearer(OPS),
      agent: false,
      signal: AbortSignal.timeout(10_000),
    });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    await built.close();
    expect(await response.toArray()).toEqual([]);
  });

  it('tells its health to everybody', async () => {
    const built = await app({ ops: OPS, ledger: null });
    expect((await built.inject('/livez')).statusCode).toBe(200);
    expect((await built.inject('/readyz')).statusCode).toBe(200);
  });
});
