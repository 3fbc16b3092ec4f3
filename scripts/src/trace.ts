import { Command } from 'commander';
import { writeFileSync } from 'node:fs';
import { Ending } from './demo/ending.js';
import { traceRows, type TraceRow } from './trace/rows.js';
import { traceOneOrder } from './trace/run.js';
import { traceSvg } from './trace/svg.js';
import { traceText } from './trace/text.js';

await main();

/** The trace goes to standard output, everything else to standard error. Exit 0 only when no span is without its parent. */
async function main(): Promise<void> {
  const { svg } = new Command('trace')
    .description('Runs the whole shop with one order, and shows its trace: every hop of every event, by service.')
    .option('--svg <file>', 'write the trace as a picture, too')
    .parse()
    .opts<{ svg?: string }>();
  const ending = new Ending(progress);
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      abort.abort(new Error(`interrupted by ${signal}`));
    });
  }
  let exitCode = 1;
  try {
    const spans = await traceOneOrder({
      progress,
      signal: abort.signal,
      atEnd: (name, undo) => {
        ending.add(name, undo);
      },
      atOnce: (kill) => {
        ending.killAtOnce(kill);
      },
      fail: (error) => {
        abort.abort(error);
      },
    });
    exitCode = tell(traceRows(spans), svg ?? null) ? 0 : 1;
  } catch (error) {
    progress(error instanceof Error ? error.message : String(error));
  }
  abort.abort(new Error('the trace is told'));
  await ending.run();
  process.exit(exitCode);
}

function tell(rows: readonly TraceRow[], svg: string | null): boolean {
  process.stdout.write(`${traceText(rows)}\n`);
  const services = new Set(rows.map(({ span }) => span.service)).size;
  if (svg !== null) {
    writeFileSync(svg, traceSvg(rows, `One order: ${rows.length} spans of ${services} services, from a real run`));
    progress(`written: ${svg}`);
  }
  return rows.every(({ isOrphan }) => !isOrphan);
}

function progress(line: string): void {
  process.stderr.write(`trace: ${(performance.now() / 1000).toFixed(1).padStart(6)} s  ${line}\n`);
}
