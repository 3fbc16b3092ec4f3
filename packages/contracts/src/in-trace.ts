import type { TraceContext } from '@nightporter/protocol';
import type { EventHeaders } from './envelope.js';

/** The same headers in another trace context; a tracestate never stands beside a foreign traceparent. */
export function inTrace<Headers extends EventHeaders>(headers: Headers, context: TraceContext): Headers {
  const others = Object.entries(headers).filter(([name]) => name !== 'tracestate');
  return { ...(Object.fromEntries(others) as Headers), ...context };
}
