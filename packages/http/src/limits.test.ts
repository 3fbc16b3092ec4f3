import { createLogger } from '@nightporter/runtime';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpApp } from './app.js';
import { ProblemError } from './errors.js';
import { commonProblem } from './problems.js';

const MAX = 2;

const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

/** With a scope that refuses everybody before their requests are read, as a guard does. */
async function app(): Promise<FastifyInstance> {
  const built = await createHttpApp({
    service: 'test',
    title: 'test',
    description: 'test',
    logger: createLogger({ name: 'test', level: 'silent' }),
    checks: {},
    requestsPerMinuteMax: MAX,
    bodyBytesMax: 1_024,
    errorProblem: () => null,
  });
  built.get('/open', () => 'open');
  await built.register((scope, _options, done) => {
    scope.addHook('onRequest', (_request, _reply, next) => {
      next(new ProblemError(commonProblem('unavailable', 'closed')));
    });
    scope.get('/closed', () => 'closed');
    done();
  });
  apps.push(built);
  return built;
}

async function statusesOf(built: FastifyInstance, url: string): Promise<number[]> {
  const statuses: number[] = [];
  for (let request = 0; request <= MAX; request += 1) statuses.push((await built.inject(url)).statusCode);
  return statuses;
}

describe('the limit of requests', () => {
  it.each([
    ['is answered', '/open', 200],
    ['a scope refuses', '/closed', 503],
    ['no route has', '/nowhere', 404],
    ['is about the API', '/docs/json', 200],
  ])('counts what %s', async (_what, url, status) => {
    expect(await statusesOf(await app(), url)).toEqual([status, status, 429]);
  });

  it('says when to try again', async () => {
    const built = await app();
    await statusesOf(built, '/nowhere');
    const answer = await built.inject('/open');
    expect(answer.statusCode).toBe(429);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(answer.headers['content-type']).toContain('application/problem+json');
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
  });

  it('does not hold for health and metrics, however they are asked', async () => {
    const built = await app();
    for (const url of ['/livez', '/readyz', '/metrics', '/livez?by=kubelet'])
      expect(await statusesOf(built, url)).toEqual([200, 200, 200]);
  });
});
