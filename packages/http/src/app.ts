import helmet from '@fastify/helmet';
import rateLimit from '@fastify/rate-limit';
import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import { readinessAnswer, readinessOf, type Logger, type ReadinessCheck, type Tracing } from '@nightporter/runtime';
import { LogController, fastify, type FastifyBaseLogger, type FastifyInstance } from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { transformWithHeaders } from './answer-headers.js';
import { answerError, answerErrors, tooManyRequests, type ErrorProblem } from './errors.js';
import { acceptJsonOnly } from './json-body.js';
import { serveMetrics } from './metrics.js';
import { traceRequests } from './tracing.js';
import { validateWithZod } from './validation.js';

export interface HttpAppOptions {
  /** Its name in metrics. */
  readonly service: string;
  /** Of the OpenAPI page at `/docs`. */
  readonly title: string;
  readonly description: string;
  /** How callers prove who they are, as the OpenAPI page has it; each route names what it needs in its schema. */
  readonly securitySchemes?: Readonly<Record<string, SecurityScheme>>;
  readonly logger: Logger;
  /** Null, or left out: requests have no spans. */
  readonly tracing?: Tracing | null;
  readonly checks: Readonly<Record<string, ReadinessCheck>>;
  /** More requests of one address within a minute are answered 429. */
  readonly requestsPerMinuteMax: number;
  /** Larger bodies are answered 413 without being read to their end. */
  readonly bodyBytesMax: number;
  readonly errorProblem: ErrorProblem;
}

/** A bearer token. */
interface SecurityScheme {
  readonly type: 'http';
  readonly scheme: 'bearer';
  readonly description: string;
}

/** Longest path parameter: 200 UTF-16 code units, percent-encoded, with room to be refused with a reason. */
const PARAM_LENGTH_MAX = 4_096;

/** Every answer names its request, as the log and the events do (`causationId`). */
const REQUEST_ID = 'x-request-id';

const UNLIMITED: ReadonlySet<string> = new Set(['/livez', '/readyz', '/metrics']);

/**
 * An HTTP application without routes of its own and without a listening socket: security headers, limits, problem documents for every
 * error, `/livez`, `/readyz`, `/metrics`, and the OpenAPI page of the routes that are registered afterwards.
 */
export async function createHttpApp(options: HttpAppOptions): Promise<FastifyInstance> {
  const { description, errorProblem, securitySchemes, title, tracing = null } = options;
  const components = securitySchemes === undefined ? {} : { components: { securitySchemes } };
  const loggerInstance: FastifyBaseLogger = options.logger;
  const app = fastify({
    loggerInstance,
    // One line per failed request is written by the error handler; two lines per good one would drown it.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.bodyBytesMax,
    requestTimeout: 30_000,
    genReqId: requestIdOf,
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
    frameworkErrors: (error, request, reply) => {
      // No hook has run.
      answerError(error, { request, reply: reply.header(REQUEST_ID, request.id), errorProblem });
    },
  });
  app.setValidatorCompiler(validateWithZod);
  app.setSerializerCompiler(serializerCompiler);
  // First of all, so that what other hooks refuse has it, too.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(REQUEST_ID, request.id);
    done();
  });
  // Before the handler of unknown routes, so that these are traced and measured too.
  if (tracing !== null) traceRequests(app, tracing);
  serveMetrics(app, options);
  answerErrors(app, errorProblem);
  acceptJsonOnly(app);
  await app.register(helmet);
  await limitRequests(app, options.requestsPerMinuteMax);
  await app.register(swagger, {
    openapi: { info: { title, version: '1', description }, ...components },
    transform: transformWithHeaders,
  });
  await app.register(swaggerUi, { routePrefix: '/docs', staticCSP: true });
  healthRoutes(app, options.checks);
  return app;
}

/**
 * Counts every request of an address: also of those who are refused for want of a token, which would else be guessed at any speed, and of
 * unknown routes. As a hook of the whole application, since the plugin's own hooks of routes run behind those of the scopes that they are in.
 */
async function limitRequests(app: FastifyInstance, max: number): Promise<void> {
  await app.register(rateLimit, {
    global: false,
    max,
    timeWindow: 60_000,
    // Health checks and scrapes must be answered whatever the load.
    allowList: ({ routeOptions }) => routeOptions.url !== undefined && UNLIMITED.has(routeOptions.url),
    errorResponseBuilder: (_request, { after }) => tooManyRequests(after),
  });
  app.addHook('onRequest', app.rateLimit());
}

/** A caller's own id goes on into log and events, where it is one that can be written anywhere. */
function requestIdOf({ headers }: { headers: IncomingHttpHeaders }): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[A-Za-z0-9._:-]{1,128}$/.test(given) ? given : randomUUID();
}

function healthRoutes(app: FastifyInstance, checks: HttpAppOptions['checks']): void {
  app.get('/livez', { schema: { hide: true } }, () => ({ status: 'alive' }));
  app.get('/readyz', { schema: { hide: true } }, async (_request, reply) => {
    const answer = readinessAnswer(await readinessOf(checks));
    return reply.code(answer.status).header('cache-control', 'no-store').send(answer.body);
  });
}
