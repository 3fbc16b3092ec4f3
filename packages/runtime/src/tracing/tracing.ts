/**
 * Spans as a service sees them. OpenTelemetry stands behind them in `sdk.ts` alone, which is loaded only where traces are asked for; a
 * service that is given no `Tracing` makes no span and pays for none.
 */
import type { TraceContext } from '@nightporter/protocol';

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/** What is undefined is left out. Never a payload, nor anything else that may be confidential. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** A context that may be missing or malformed; then it counts as none. */
export type MaybeContext = { readonly [Key in keyof TraceContext]?: TraceContext[Key] | undefined };

export interface SpanStart {
  readonly name: string;
  readonly kind: SpanKind;
  /** Without a parent the span is the first of its trace. */
  readonly parent?: MaybeContext;
  /** Other spans that this one has to do with. */
  readonly links?: readonly MaybeContext[];
  readonly attributes: SpanAttributes;
}

/** A span that has begun. Nothing of it throws, and nothing waits; after `end` nothing changes it. */
export interface ActiveSpan {
  /** What others name as their parent. */
  readonly context: TraceContext;
  set(attributes: SpanAttributes): void;
  link(context: MaybeContext): void;
  /** Something within the span, at this moment. */
  event(name: string): void;
  /** `type` is a code or the name of a class: messages may hold anything, so none goes along. */
  fail(type: string): void;
  /** Runs `work` so that spans which it opens through OpenTelemetry's own API are children of this one. */
  run<Result>(work: () => Result): Result;
  end(): void;
}

/** What became of the spans that were sampled and have ended. */
export interface SpanCounts {
  readonly exported: number;
  /** The queue was full. */
  readonly dropped: number;
  /** The collector did not take them. */
  readonly failed: number;
}

export interface Tracing {
  start(span: SpanStart): ActiveSpan;
  counts(): SpanCounts;
}

/** The type of an error for `fail`: its code, else the name of its class. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : error.name;
}
