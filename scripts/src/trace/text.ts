import { eventTypeOf, outcomeOf, type TraceRow } from './rows.js';

/** The trace for a terminal: a line for each span, with its begin after that of the first, and its length. */
export function traceText(rows: readonly TraceRow[]): string {
  const beginMs = Math.min(...rows.map(({ span }) => span.startMs));
  const widest = Math.max(...rows.map(({ span, depth }) => 2 * depth + span.name.length));
  const services = Math.max(...rows.map(({ span }) => span.service.length));
  const lines = rows.map(({ span, depth, isOrphan }) => {
    const name = `${'  '.repeat(depth)}${span.name}`.padEnd(widest);
    const times = [span.startMs - beginMs, span.endMs - span.startMs].map((ms) => `${ms.toFixed(1)} ms`.padStart(11));
    const facts = [eventTypeOf(span), outcomeOf(span), isOrphan ? 'without its parent' : ''].filter(
      (fact) => fact !== '',
    );
    return `${times.join(' ')}  ${span.service.padEnd(services)}  ${name}  ${facts.join(', ')}`.trimEnd();
  });
  return [`${'begins'.padStart(11)} ${'takes'.padStart(11)}`, ...lines].join('\n');
}
