import type { EventEnvelope, EventHeaders } from '@nightporter/contracts';

/**
 * Headers of what a handler emits while it handles `cause`: the same story, tenant and trace, and the cause by name. A cause from
 * elsewhere may have no correlationId; then the story is named after it.
 */
export function headersCausedBy(cause: EventEnvelope): EventHeaders {
  const { traceparent, tracestate, tenantId, correlationId, eventId } = cause;
  return {
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { tracestate }),
    ...(tenantId === undefined ? {} : { tenantId }),
    correlationId: correlationId ?? eventId,
    causationId: eventId,
  };
}
