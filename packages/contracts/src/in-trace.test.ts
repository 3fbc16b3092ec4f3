import { describe, expect, it } from 'vitest';
import { inTrace } from './in-trace.js';

describe('headers in another trace', () => {
  const headers = { traceparent: 'old', tracestate: 'vendor=old', tenantId: 'acme' };

  it('keep what is not of the trace, and no state of the old one', () => {
    expect(inTrace(headers, { traceparent: 'new' })).toEqual({ traceparent: 'new', tenantId: 'acme' });
    expect(inTrace(headers, { traceparent: 'new', tracestate: 'vendor=new' })).toEqual({
      traceparent: 'new',
      tracestate: 'vendor=new',
      tenantId: 'acme',
    });
  });
});
