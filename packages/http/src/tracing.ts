import type { TraceContext } from '@nightporter/protocol';
import type { ActiveSpan, Tracing } from '@nightporter/runtime';
import type { FastifyInstance, FastifyRequest } from 'fastify';

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Asked for all the time, and part of nobody's story. */
const UNTRACED: ReadonlySet<string> = new Set(['/livez', '/readyz', '/metrics']);

const spans = new WeakMap<FastifyRequest, ActiveSpan>();

/**
 * Where what a request causes belongs: below its own span; where there is none, below whatever span its caller has named, which may
 * be malformed.
 */
export function traceOf(request: FastifyRequest): { readonly [Key in keyof TraceContext]?: string } {
  return spans.get(request)?.context ?? callersTrace(request);
}

function callersTrace({ headers }: FastifyRequest): { readonly [Key in keyof TraceContext]?: string } {
  const { traceparent, tracestate } = headers;
  return {
    ...(typeof traceparent === 'string' ? { traceparent } : {}),
    ...(typeof tracestate === 'string' ? { tracestate } : {}),
  };
}

/** A span for every request but those of probes and scrapes, by OpenTelemetry's conventions for HTTP servers. */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  app.addHook('onRequest', (request, _reply, done) => {
    const path = request.url.split('?', 1)[0] ?? '';
    if (!UNTRACED.has(path)) spans.set(request, begin(request, { tracing, path }));
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const span = spans.get(request);
    span?.set({ 'http.response.status_code': reply.statusCode });
    if (reply.statusCode >= 500) span?.fail(String(reply.statusCode));
    span?.end();
    done();
  });
  app.addHook('onRequestAbort', (request, done) => {
    const span = spans.get(request);
    span?.fail('aborted');
    span?.end();
    done();
  });
}

function begin(
  request: FastifyRequest,
  { tracing, path }: { readonly tracing: Tracing; readonly path: string },
): ActiveSpan {
  const method = METHODS.has(request.method) ? request.method : '_OTHER';
  const route = request.routeOptions.url;
  return tracing.start({
    // Without a route only the method is known to be one of few.
    name: route === undefined ? method : `${method} ${route}`,
    kind: 'server',
    parent: callersTrace(request),
    attributes: {
      'http.request.method': method,
      'http.route': route,
      // Without the query, which may hold anything.
      'url.path': path,
      'url.scheme': request.protocol,
      'network.protocol.version': request.raw.httpVersion,
    },
  });
}
