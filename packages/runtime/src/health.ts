import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Exposition } from './metrics.js';

/** Whether the service makes progress. `reasons` are sentences for an operator. */
export type Readiness =
  { readonly kind: 'ready' } | { readonly kind: 'not-ready'; readonly reasons: readonly string[] };

/** One question of readiness: null when all is well, else why not. */
export type ReadinessCheck = () => Promise<string | null> | string | null;

/** A check that has not answered by then counts as failed: a probe must not hang with what it probes. */
const CHECK_MS = 2_000;

/** Asks every check at once. A check that throws or hangs is a reason, never an error. */
export async function readinessOf(checks: Readonly<Record<string, ReadinessCheck>>): Promise<Readiness> {
  const answers = await Promise.all(Object.entries(checks).map(([name, check]) => ask(name, check)));
  const reasons = answers.filter((answer) => answer !== null);
  return reasons.length === 0 ? { kind: 'ready' } : { kind: 'not-ready', reasons };
}

async function ask(name: string, check: ReadinessCheck): Promise<string | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, CHECK_MS, `gave no answer within ${CHECK_MS} ms`);
  });
  try {
    const reason = await Promise.race([Promise.resolve(check()), late]);
    return reason === null ? null : `${name}: ${reason}`;
  } catch (error) {
    return `${name}: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    clearTimeout(timer);
  }
}

/** Status and body of a readiness answer, the same for every service. */
export function readinessAnswer(readiness: Readiness): {
  status: 200 | 503;
  body: { status: string; reasons?: readonly string[] };
} {
  if (readiness.kind === 'ready') return { status: 200, body: { status: 'ready' } };
  return { status: 503, body: { status: 'not ready', reasons: readiness.reasons } };
}

export interface HealthServer {
  /** The port it listens on, chosen by the system when 0 was asked for. */
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `/livez` (the process answers: 200), `/readyz` (200, or 503 with reasons) and, where given, `/metrics` for Prometheus and `/status` with the
 * service's own figures as JSON.
 * Rejects when the address is taken.
 */
export async function createHealthServer(options: {
  host: string;
  port: number;
  checks: Readonly<Record<string, ReadinessCheck>>;
  metrics?: { read(): Promise<Exposition> };
  status?: () => unknown;
}): Promise<HealthServer> {
  const server = createServer((request, response) => {
    void answer(request.url ?? '/', response, options);
  });
  server.requestTimeout = 10_000;
  server.keepAliveTimeout = 5_000;
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    close: () => close(server),
  };
}

type Answering = Pick<Parameters<typeof createHealthServer>[0], 'checks' | 'metrics' | 'status'>;

async function answer(url: string, response: ServerResponse, { checks, metrics, status }: Answering): Promise<void> {
  const path = url.split('?', 1)[0];
  if (path === '/livez') {
    reply(response, 200, { status: 'alive' });
  } else if (path === '/readyz') {
    const readiness = readinessAnswer(await readinessOf(checks));
    reply(response, readiness.status, readiness.body);
  } else if (path === '/metrics' && metrics !== undefined) {
    const { contentType, text } = await metrics.read();
    response.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' });
    response.end(text);
  } else if (path === '/status' && status !== undefined) {
    reply(response, 200, status());
  } else {
    reply(response, 404, {
      status: 'not found',
      paths: [
        '/livez',
        '/readyz',
        ...(metrics === undefined ? [] : ['/metrics']),
        ...(status === undefined ? [] : ['/status']),
      ],
    });
  }
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

async function listen(server: Server, address: { host: string; port: number }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function close(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
