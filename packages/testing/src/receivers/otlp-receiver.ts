import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A span as a collector is told of it, in plain values. */
export interface ReceivedSpan {
  /** `service.name` of the process. */
  readonly service: string;
  readonly name: string;
  readonly kind: 'unspecified' | 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  readonly traceId: string;
  readonly spanId: string;
  /** Null where the span is the first of its trace. */
  readonly parentSpanId: string | null;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly events: readonly string[];
  readonly hasFailed: boolean;
}

export interface OtlpReceiver {
  /** `http://127.0.0.1:port`, for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly endpoint: string;
  /** Everything so far, in the order of arrival. */
  spans(): readonly ReceivedSpan[];
  /** Headers of the last request. */
  headers(): Readonly<Record<string, unknown>>;
  /** How requests are answered from now on; `hang` leaves them without an answer. */
  answer(how: 'take' | 'refuse' | 'hang'): void;
  close(): Promise<void>;
}

/** A collector that keeps what it is sent as OTLP over HTTP in JSON. */
export async function receiveOtlp(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let headers: Readonly<Record<string, unknown>> = {};
  let how: 'take' | 'refuse' | 'hang' = 'take';
  const server = createServer((request, response) => {
    void bodyOf(request).then((body) => {
      headers = request.headers;
      if (how === 'hang') return;
      if (how === 'refuse' || request.url !== '/v1/traces') {
        reply(response, how === 'refuse' ? 400 : 404);
        return;
      }
      spans.push(...spansOf(JSON.parse(body) as OtlpRequest));
      reply(response, 200);
    });
  });
  await listen(server);
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => spans,
    headers: () => headers,
    answer: (next) => {
      how = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
}
type OtlpAttributes = readonly { readonly key: string; readonly value: OtlpValue }[];
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: OtlpAttributes;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly events?: readonly { readonly name: string }[];
  readonly status?: { readonly code?: number };
}
interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource?: { readonly attributes?: OtlpAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const FAILED = 2;

function spansOf({ resourceSpans }: OtlpRequest): readonly ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(valuesOf(resource?.attributes)['service.name']);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(span, service)));
  });
}

function spanOf(span: OtlpSpan, service: string): ReceivedSpan {
  const { name, traceId, spanId, parentSpanId = '' } = span;
  return {
    service,
    name,
    kind: KINDS[span.kind] ?? 'unspecified',
    traceId,
    spanId,
    parentSpanId: parentSpanId === '' ? null : parentSpanId,
    startMs: Number(span.startTimeUnixNano) / 1e6,
    endMs: Number(span.endTimeUnixNano) / 1e6,
    attributes: valuesOf(span.attributes),
    links: (span.links ?? []).map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    events: (span.events ?? []).map((event) => event.name),
    hasFailed: span.status?.code === FAILED,
  };
}

function valuesOf(attributes: OtlpAttributes = []): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { boolValue, doubleValue, intValue, stringValue } = value;
      return [key, stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? null : Number(intValue))];
    }),
  );
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body = Buffer.concat(parts);
  return (request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body).toString('utf8');
}

function reply(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end('{}');
}

async function listen(server: Server): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
}
