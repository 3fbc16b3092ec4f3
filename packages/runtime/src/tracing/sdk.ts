/**
 * The OpenTelemetry SDK behind `Tracing`. Loaded dynamically, and only where traces are asked for: it takes its time at the start, and
 * memory for as long as the process lives.
 */
import {
  ROOT_CONTEXT,
  SpanKind as OtelKind,
  SpanStatusCode,
  context as contexts,
  createTraceState,
  trace,
  type Attributes,
  type Context,
  type Link,
  type Span,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  type Sampler,
} from '@opentelemetry/sdk-trace-base';
import { partsOfTraceparent, type TraceContext } from '@nightporter/protocol';
import type { SamplerName } from './settings.js';
import type { ProcessTracing } from './start-tracing.js';
import { SpanGate, type SpanGateOptions } from './span-gate.js';
import type { ActiveSpan, MaybeContext, SpanAttributes, SpanKind, SpanStart } from './tracing.js';

export interface SdkOptions extends SpanGateOptions {
  /** The whole address for spans. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly sampler: SamplerName;
  readonly ratio: number;
  /** Of the process: `service.name` and others. */
  readonly resource: SpanAttributes;
  readonly delayMs: number;
}

const BATCH_MAX = 512;

export function createSdk(options: SdkOptions): ProcessTracing {
  const gate = new SpanGate(options);
  const { url, timeoutMs: timeoutMillis, delayMs, queueMax } = options;
  const exporter = new OTLPTraceExporter({ url, headers: { ...options.headers }, timeoutMillis });
  const queue = new BatchSpanProcessor(gate.exporter(exporter), {
    maxQueueSize: queueMax,
    maxExportBatchSize: Math.min(BATCH_MAX, queueMax),
    scheduledDelayMillis: delayMs,
    // The exporter has given up by then, and says so.
    exportTimeoutMillis: timeoutMillis + 1_000,
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes(attributesOf(options.resource)),
    sampler: samplerOf(options.sampler, options.ratio),
    spanProcessors: [gate.processor(queue)],
  });
  const isGlobal = trace.setGlobalTracerProvider(provider);
  // What handlers trace through OpenTelemetry's own API belongs below our spans; that needs a context that follows their awaits.
  const contextManager = new AsyncLocalStorageContextManager().enable();
  const followsContexts = contexts.setGlobalContextManager(contextManager);
  const tracer = provider.getTracer('nightporter');
  return {
    start: (span) => startSpan(tracer, span),
    counts: () => gate.counts(),
    close: async (limitMs) => {
      await atMost(limitMs, provider.shutdown());
      if (isGlobal) trace.disable();
      if (followsContexts) contexts.disable();
      return gate.held;
    },
  };
}

async function atMost(limitMs: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  try {
    await Promise.race([work, limit]);
  } catch {
    // Spans that the collector did not take: the gate has counted and told them.
  } finally {
    clearTimeout(timer);
  }
}

function samplerOf(name: SamplerName, ratio: number): Sampler {
  switch (name) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
}

const KINDS: Readonly<Record<SpanKind, OtelKind>> = {
  internal: OtelKind.INTERNAL,
  server: OtelKind.SERVER,
  client: OtelKind.CLIENT,
  producer: OtelKind.PRODUCER,
  consumer: OtelKind.CONSUMER,
};

function startSpan(tracer: Tracer, { name, kind, parent = {}, links = [], attributes }: SpanStart): ActiveSpan {
  const above = spanContextOf(parent);
  const around = above === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, above);
  const options = { kind: KINDS[kind], attributes: attributesOf(attributes), links: links.flatMap(linkTo) };
  return new OtelSpan(tracer.startSpan(name, options, around), around);
}

class OtelSpan implements ActiveSpan {
  readonly context: TraceContext;
  readonly #span: Span;
  readonly #around: Context;

  constructor(span: Span, around: Context) {
    this.#span = span;
    this.#around = around;
    this.context = traceContextOf(span.spanContext());
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes(attributesOf(attributes));
  }

  link(context: MaybeContext): void {
    this.#span.addLinks(linkTo(context));
  }

  event(name: string): void {
    this.#span.addEvent(name);
  }

  fail(type: string): void {
    this.#span.setAttribute('error.type', type);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  run<Result>(work: () => Result): Result {
    return contexts.with(trace.setSpan(this.#around, this.#span), work);
  }

  end(): void {
    this.#span.end();
  }
}

function linkTo(context: MaybeContext): Link[] {
  const to = spanContextOf(context);
  return to === null ? [] : [{ context: to }];
}

function spanContextOf({ traceparent, tracestate }: MaybeContext): SpanContext | null {
  const parts = partsOfTraceparent(traceparent);
  if (parts === null) return null;
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  const { traceId, spanId, flags } = parts;
  return { traceId, spanId, traceFlags: flags & 1, isRemote: true, ...state };
}

function traceContextOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  const tracestate = traceState?.serialize() ?? '';
  return tracestate === '' ? { traceparent } : { traceparent, tracestate };
}

function attributesOf(attributes: SpanAttributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}
