/**
 * W3C Trace Context, as headers carry it: enough to tell a trace from what only looks like one.
 */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** Where in which trace something happened. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

export function isTraceparent(value: unknown): value is string {
  return typeof value === 'string' && TRACEPARENT.test(value);
}

export interface TraceparentParts {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly flags: number;
}

/** Null where it is malformed or absent: such a context counts as none. */
export function partsOfTraceparent(value: unknown): TraceparentParts | null {
  if (!isTraceparent(value)) return null;
  const [, traceId = '', spanId = '', flags = ''] = value.split('-');
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** The trace of an event, for its log lines: an object to spread, empty where the event has none, or has no headers at all. */
export function traceIdOf(headers: { readonly traceparent?: unknown } | undefined): { readonly traceId?: string } {
  const parts = partsOfTraceparent(headers?.traceparent);
  return parts === null ? {} : { traceId: parts.traceId };
}
