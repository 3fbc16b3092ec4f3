import { afterEach, describe, expect, it } from 'vitest';
import { createHealthServer, readinessOf, type HealthServer, type ReadinessCheck } from './health.js';
import { createMetrics } from './metrics.js';

const servers: HealthServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(checks: Record<string, ReadinessCheck>): Promise<(path: string) => Promise<Response>> {
  const server = await createHealthServer({
    host: '127.0.0.1',
    port: 0,
    checks,
    metrics: createMetrics({}, { service: 'test', checks }),
    status: () => ({ published: 3 }),
  });
  servers.push(server);
  return (path) => fetch(`http://127.0.0.1:${server.port}${path}`);
}

describe('health', () => {
  it('is alive whatever its checks say', async () => {
    const get = await serve({ database: () => 'down' });
    expect((await get('/livez')).status).toBe(200);
  });

  it('is ready when every check passes', async () => {
    const get = await serve({ database: () => null, broker: () => Promise.resolve(null) });
    const answer = await get('/readyz?verbose');
    expect([answer.status, await answer.json()]).toEqual([200, { status: 'ready' }]);
  });

  it('names each reason when it is not ready, thrown ones too', async () => {
    const get = await serve({
      database: () => 'no primary',
      broker: () => Promise.reject(new Error('refused')),
      lease: () => null,
    });
    const answer = await get('/readyz');
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { status: 'not ready', reasons: ['database: no primary', 'broker: refused'] },
    ]);
  });

  it('does not hang with a check that hangs', async () => {
    const readiness = await readinessOf({ database: () => new Promise<never>(() => undefined) });
    expect(readiness).toEqual({ kind: 'not-ready', reasons: ['database: gave no answer within 2000 ms'] });
  });

  it('serves its figures, and names its paths to whoever asks for another', async () => {
    const get = await serve({});
    expect(await (await get('/status')).json()).toEqual({ published: 3 });
    const missing = await get('/');
    expect([missing.status, await missing.json()]).toEqual([
      404,
      { status: 'not found', paths: ['/livez', '/readyz', '/metrics', '/status'] },
    ]);
  });

  it('serves its metrics for Prometheus, readiness among them', async () => {
    const answer = await (await serve({ database: () => 'down' }))('/metrics');
    expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    expect(await answer.text()).toContain('nightporter_ready{service="test"} 0');
  });

  it('refuses to start on a port that is taken', async () => {
    const first = await createHealthServer({ host: '127.0.0.1', port: 0, checks: {} });
    servers.push(first);
    await expect(createHealthServer({ host: '127.0.0.1', port: first.port, checks: {} })).rejects.toThrow('EADDRINUSE');
  });
});
