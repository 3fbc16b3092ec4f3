import type { EventHeaders } from '@nightporter/contracts';
import { isNightporterError } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { mergeHeaders } from './headers.js';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const otherTrace = '00-11111111111111111111111111111111-2222222222222222-00';

describe('the headers of an event', () => {
  it('are its own, else the defaults', () => {
    const own = { tenantId: 'mine' };
    const defaults = { tenantId: 'theirs', correlationId: 'c', causationId: 'k' };
    expect(mergeHeaders(own, defaults)).toStrictEqual({ tenantId: 'mine', correlationId: 'c', causationId: 'k' });
  });

  it('take trace context as one: a tracestate never stands beside a foreign traceparent', () => {
    expect(mergeHeaders({ traceparent }, { traceparent: otherTrace, tracestate: 'a=b' })).toStrictEqual({
      traceparent,
    });
    expect(mergeHeaders({}, { traceparent, tracestate: 'a=b' })).toStrictEqual({ traceparent, tracestate: 'a=b' });
    expect(mergeHeaders({ tracestate: 'a=b' }, {})).toStrictEqual({});
  });

  it.each([
    'nonsense',
    '',
    traceparent.toUpperCase(),
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  ])(
    'leave out the malformed traceparent %j, for a business transaction must not fail for its tracing',
    (malformed) => {
      expect(mergeHeaders({ traceparent: malformed, tracestate: 'a=b' }, {})).toStrictEqual({});
    },
  );

  it.each(['a=\u0001', 'x'.repeat(513), 'ä=1'])('leave out the malformed tracestate %j', (tracestate) => {
    expect(mergeHeaders({ traceparent, tracestate }, {})).toStrictEqual({ traceparent });
  });

  it.each<[string, unknown]>([
    ['an empty tenantId', { tenantId: '' }],
    ['a blank correlationId', { correlationId: ' ' }],
    ['a causationId with a line break', { causationId: 'a\nb' }],
    ['a tenantId of 257 characters', { tenantId: 'x'.repeat(257) }],
    ['a lone surrogate', { correlationId: '\ud83d' }],
    ['a number', { tenantId: 7 }],
    ['an unknown header', { userId: 'u' }],
  ])('are refused with %s', (_name, headers) => {
    for (const [own, defaults] of [
      [headers, {}],
      [{}, headers],
    ] as [EventHeaders, EventHeaders][]) {
      try {
        mergeHeaders(own, defaults);
        expect.unreachable();
      } catch (error) {
        expect(isNightporterError(error, 'NP_EVENT_INVALID')).toBe(true);
      }
    }
  });
});
