import { rmSync } from 'node:fs';
import type { Fleet } from './demo/fleet.js';
import { parseOptions, type DemoOptions } from './demo/options.js';
import { reportText, summarize } from './demo/report.js';
import { runDemo, type DemoRun } from './demo/run.js';
import { beginLife, exitCodeOf } from './demo/surroundings.js';

await main();

/** The report goes to standard output, everything else to standard error. Exit 0 only when all that was promised is there. */
async function main(): Promise<void> {
  const options = parseOptions(process.argv);
  const { end, failed, interrupted, surroundings } = beginLife(progress);
  let exitCode = 1;
  try {
    const run = await Promise.race([failed, runDemo(options, surroundings)]);
    exitCode = print(run, options) ? 0 : 1;
    if (options.keep) {
      progress('everything keeps running; Ctrl-C ends it');
      await failed;
    }
  } catch (error) {
    if (interrupted() === null) progress(error instanceof Error ? error.message : String(error));
  }
  await end();
  const signal = interrupted();
  // A demo that was kept and then ended with Ctrl-C has done what it was asked to.
  process.exit(signal === null || (options.keep && exitCode === 0) ? exitCode : exitCodeOf(signal));
}

function print({ findings, fleet, logFolder }: DemoRun, options: DemoOptions): boolean {
  const summary = summarize(findings);
  process.stdout.write(`${reportText(findings)}\n`);
  if (options.keep) process.stdout.write(`\n${curlLines(fleet)}\n`);
  if (options.json) process.stdout.write(`${JSON.stringify(summary)}\n`);
  if (summary.ok && !options.keep) rmSync(logFolder, { recursive: true, force: true });
  else progress(`the services' logs are in ${logFolder}`);
  return summary.ok;
}

function curlLines(fleet: Fleet): string {
  const order =
    '{"orderId":"mine","customerId":"me","currency":"EUR","lines":[{"productId":"product-1","quantity":2,"unitPriceMinor":250}]}';
  const json = `-H 'content-type: application/json'`;
  return [
    'Try it:',
    `  curl -i ${fleet.apiUrl}/orders ${json} -d '${order}'`,
    `  curl -i ${fleet.apiUrl}/orders/mine/pay ${json} -d '{"transactionId":"t-1"}'`,
    `  curl -i -X POST ${fleet.apiUrl}/orders/mine/complete`,
    `  curl -i ${fleet.apiUrl}/orders/mine`,
    ...fleet.urls().map(({ name, url }) => `  curl ${url}/readyz   # ${name}`),
    `  API description: ${fleet.apiUrl}/docs`,
  ].join('\n');
}

function progress(line: string): void {
  process.stderr.write(`demo: ${(performance.now() / 1000).toFixed(1).padStart(6)} s  ${line}\n`);
}
