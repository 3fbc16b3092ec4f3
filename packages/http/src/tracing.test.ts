import { createLogger, type ActiveSpan, type SpanStart, type Tracing } from '@nightporter/runtime';
import { describe, expect, it } from 'vitest';
import { createHttpApp } from './app.js';
import { traceOf } from './tracing.js';

const CALLER = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'vendor=1' };
const OWN = '00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01';

async function appWith(isTraced: boolean) {
  const spans: { start: SpanStart; said: unknown[] }[] = [];
  const lines: string[] = [];
  const tracing: Tracing = {
    counts: () => ({ exported: 0, dropped: 0, failed: 0 }),
    start: (start): ActiveSpan => {
      const said: unknown[] = [];
      spans.push({ start, said });
      return {
        context: { traceparent: OWN },
        set: (attributes) => said.push(attributes),
        link: () => undefined,
        event: () => undefined,
        fail: (type) => said.push(type),
        run: (work) => work(),
        end: () => said.push('end'),
      };
    },
  };
  const app = await createHttpApp({
    service: 'sample',
    title: 'Sample',
    description: 'A sample.',
    logger: createLogger({ name: 'sample', level: 'info', destination: { write: (line) => lines.push(line) } }),
    checks: {},
    requestsPerMinuteMax: 1_000,
    bodyBytesMax: 1_000,
    errorProblem: () => null,
    ...(isTraced ? { tracing } : {}),
  });
  app.get('/things/:id', (request) => traceOf(request));
  app.get('/broken', () => {
    throw new Error('broken');
  });
  return { app, spans, lines };
}

describe('a request', () => {
  it('has a span below its caller’s, by its route, and what it causes stands below that', async () => {
    const { app, spans } = await appWith(true);
    const answer = await app.inject({ url: '/things/4711?token=x', headers: CALLER });
    expect(answer.json()).toEqual({ traceparent: OWN });
    expect(spans).toHaveLength(1);
    expect(spans[0]!.start).toMatchObject({
      name: 'GET /things/:id',
      kind: 'server',
      parent: CALLER,
      attributes: { 'http.request.method': 'GET', 'http.route': '/things/:id', 'url.path': '/things/4711' },
    });
    expect(spans[0]!.said).toEqual([{ 'http.response.status_code': 200 }, 'end']);
    await app.close();
  });

  it('that fails is an error in its span, and its log line names the trace', async () => {
    const { app, spans, lines } = await appWith(true);
    expect((await app.inject('/broken')).statusCode).toBe(500);
    expect(spans[0]!.said).toEqual([{ 'http.response.status_code': 500 }, '500', 'end']);
    expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({ msg: 'request failed', traceId: '4bf92f3577b34da6a3ce929d0e0e4736' }),
    );
    await app.close();
  });

  it('of a route that does not exist is named by its method alone, and one of a probe not at all', async () => {
    const { app, spans } = await appWith(true);
    for (const url of ['/nothing/4711', '/livez', '/readyz', '/metrics']) await app.inject(url);
    expect(spans.map(({ start }) => start.name)).toEqual(['GET']);
    await app.close();
  });

  it('without traces of our own goes on in its caller’s', async () => {
    const { app } = await appWith(false);
    expect((await app.inject({ url: '/things/1', headers: CALLER })).json()).toEqual(CALLER);
    await app.close();
  });
});
