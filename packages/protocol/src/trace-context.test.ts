import { describe, expect, it } from 'vitest';
import { isTraceparent, partsOfTraceparent, traceIdOf } from './trace-context.js';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

describe('a traceparent', () => {
  it('tells trace, span and flags', () => {
    expect(partsOfTraceparent(`00-${traceId}-${spanId}-01`)).toEqual({ traceId, spanId, flags: 1 });
    expect(traceIdOf({ traceparent: `00-${traceId}-${spanId}-00` })).toEqual({ traceId });
  });

  it.each([
    undefined,
    null,
    1,
    '',
    `ff-${traceId}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-`,
    ` 00-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01\n`,
  ])('that is malformed counts as none: %o', (value) => {
    expect(isTraceparent(value)).toBe(false);
    expect(partsOfTraceparent(value)).toBeNull();
    expect(traceIdOf({ traceparent: value })).toEqual({});
  });

  it('is missing where there are no headers', () => {
    expect(traceIdOf(undefined)).toEqual({});
  });
});
