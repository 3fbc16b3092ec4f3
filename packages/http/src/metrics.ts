import { createMetrics, type Metrics, type MetricTable, type ReadinessCheck, type Tracing } from '@nightporter/runtime';
import type { FastifyInstance } from 'fastify';

/** What an HTTP service tells Prometheus, by OpenTelemetry's names. */
export const HTTP_METRICS = {
  requests: {
    kind: 'histogram',
    name: 'http_server_request_duration_seconds',
    help: 'From the arrival of a request until its answer was handed over (http.server.request.duration). Its count by status is the rate of requests and of failures.',
    labels: ['http_request_method', 'http_route', 'http_response_status_code'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  },
} as const satisfies MetricTable;

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Adds `/metrics` to `app`, and measures every request. */
export function serveMetrics(
  app: FastifyInstance,
  options: {
    readonly service: string;
    readonly checks: Readonly<Record<string, ReadinessCheck>>;
    readonly tracing?: Tracing | null;
  },
): void {
  const metrics: Metrics<typeof HTTP_METRICS> = createMetrics(HTTP_METRICS, options);
  app.addHook('onResponse', (request, reply, done) => {
    const labels = {
      http_request_method: METHODS.has(request.method) ? request.method : '_OTHER',
      // The pattern, not the path: a path has ids in it.
      http_route: request.routeOptions.url ?? 'unmatched',
      http_response_status_code: String(reply.statusCode),
    };
    metrics.observe('requests', labels, reply.elapsedTime / 1_000);
    done();
  });
  app.get('/metrics', { schema: { hide: true } }, async (_request, reply) => {
    const { contentType, text } = await metrics.read();
    return reply.header('content-type', contentType).header('cache-control', 'no-store').send(text);
  });
}
