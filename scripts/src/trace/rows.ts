import type { ReceivedSpan } from '@nightporter/testing/receivers';

/** A span in its place under its parent. */
export interface TraceRow {
  readonly span: ReceivedSpan;
  /** 0 for what stands below nothing. */
  readonly depth: number;
  /** Its parent is not among the spans, although it names one. */
  readonly isOrphan: boolean;
}

/** One trace from the top: each span above those that it caused, and these in the order of their beginnings. */
export function traceRows(spans: readonly ReceivedSpan[]): readonly TraceRow[] {
  const known = new Set(spans.map(({ spanId }) => spanId));
  const isTop = ({ parentSpanId }: ReceivedSpan): boolean => parentSpanId === null || !known.has(parentSpanId);
  const below = (parent: ReceivedSpan, depth: number): readonly TraceRow[] =>
    ordered(spans.filter(({ parentSpanId }) => parentSpanId === parent.spanId)).flatMap((span) => [
      { span, depth, isOrphan: false },
      ...below(span, depth + 1),
    ]);
  return ordered(spans.filter(isTop)).flatMap((span) => [
    { span, depth: 0, isOrphan: span.parentSpanId !== null },
    ...below(span, 1),
  ]);
}

/** The same spans always come in the same order. */
function ordered(spans: readonly ReceivedSpan[]): readonly ReceivedSpan[] {
  return [...spans].sort((a, b) => a.startMs - b.startMs || compare(a.name, b.name) || compare(a.spanId, b.spanId));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** What belongs to a span's name: how it ended, where it says so. */
export function outcomeOf({ attributes }: ReceivedSpan): string {
  const outcome = attributes['nightporter.outcome'];
  return typeof outcome === 'string' ? outcome : '';
}

export function eventTypeOf({ attributes }: ReceivedSpan): string {
  const type = attributes['nightporter.event.type'];
  return typeof type === 'string' ? type : '';
}
