import type { ReceivedSpan } from '@nightporter/testing/receivers';
import { describe, expect, it } from 'vitest';
import { traceRows } from './rows.js';
import { traceSvg } from './svg.js';
import { traceText } from './text.js';

function span(
  spanId: string,
  parentSpanId: string | null,
  startMs: number,
  more: Partial<ReceivedSpan> = {},
): ReceivedSpan {
  return {
    service: 'relay',
    name: `span ${spanId}`,
    kind: 'internal',
    traceId: 't',
    spanId,
    parentSpanId,
    startMs,
    endMs: startMs + 10,
    attributes: {},
    links: [],
    events: [],
    hasFailed: false,
    ...more,
  };
}

const SPANS = [
  span('send', 'write', 1_020, { attributes: { 'nightporter.event.type': 'OrderCreated' } }),
  span('write', 'request', 1_001),
  span('request', null, 1_000, { service: 'orders-api', name: 'POST <&>' }),
  span('process', 'send', 1_040, { service: 'points-worker', attributes: { 'nightporter.outcome': 'applied' } }),
  span('process 0', 'send', 1_040, { service: 'inventory-worker' }),
  span('lost', 'nobody', 1_050),
];

describe('the rows of a trace', () => {
  it('stand below what caused them, in the order of their beginnings, and tell who has lost a parent', () => {
    const rows = traceRows(SPANS).map(({ span: { spanId }, depth, isOrphan }) => [spanId, depth, isOrphan]);
    expect(rows).toEqual([
      ['request', 0, false],
      ['write', 1, false],
      ['send', 2, false],
      ['process', 3, false],
      ['process 0', 3, false],
      ['lost', 0, true],
    ]);
  });

  it('are told with their times and ends', () => {
    const lines = traceText(traceRows(SPANS)).split('\n');
    expect(lines[1]).toMatch(/^ +0\.0 ms +10\.0 ms {2}orders-api +POST <&>$/);
    expect(lines[3]).toMatch(/20\.0 ms +10\.0 ms {2}relay +span send +OrderCreated$/);
    expect(lines[6]).toMatch(/without its parent$/);
  });
});

describe('the picture of a trace', () => {
  it('is the same for the same spans, whatever order they came in', () => {
    const picture = traceSvg(traceRows(SPANS), 'One order');
    expect(traceSvg(traceRows([...SPANS].reverse()), 'One order')).toBe(picture);
  });

  it('has a bar and a label for each span, on light and on dark ground, and no mark-up of theirs', () => {
    const picture = traceSvg(traceRows(SPANS), 'One <order>');
    expect(picture.match(/<g>/g)).toHaveLength(SPANS.length);
    expect(picture).toContain('POST &lt;&amp;&gt;');
    expect(picture).toContain('One &lt;order&gt;');
    expect(picture).toContain('prefers-color-scheme:dark');
  });
});
