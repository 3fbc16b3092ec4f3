import { Command } from 'commander';
import { writeFileSync } from 'node:fs';
import { beginLife, exitCodeOf } from './demo/surroundings.js';
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
  const { end, failed, interrupted, surroundings } = beginLife(progress);
  let exitCode = 1;
  try {
    const spans = await Promise.race([failed, traceOneOrder(surroundings)]);
    exitCode = tell(traceRows(spans), svg ?? null) ? 0 : 1;
  } catch (error) {
    if (interrupted() === null) progress(error instanceof Error ? error.message : String(error));
  }
  await end();
  const signal = interrupted();
  process.exit(signal === null ? exitCode : exitCodeOf(signal));
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
