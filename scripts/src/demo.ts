import { rmSync } from 'node:fs';
import { constants } from 'node:os';
import { Ending } from './demo/ending.js';
import type { Fleet } from './demo/fleet.js';
import { parseOptions, type DemoOptions } from './demo/options.js';
import { reportText, summarize } from './demo/report.js';
import { runDemo, type DemoRun } from './demo/run.js';

await main();

/** The report goes to standard output, everything else to standard error. Exit 0 only when all that was promised is there. */
async function main(): Promise<void> {
  const options = parseOptions(process.argv);
  const ending = new Ending(progress);
  const abort = new AbortController();
  const interrupted = interruption(abort);
  const failed = new Promise<never>((_resolve, reject) => {
    abort.signal.addEventListener('abort', () => {
      reject(abort.signal.reason as Error);
    });
  });
  let exitCode = 1;
  try {
    const run = await Promise.race([
      failed,
      runDemo(options, {
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
      }),
    ]);
    exitCode = print(run, options) ? 0 : 1;
    if (options.keep) {
      progress('everything keeps running; Ctrl-C ends it');
      await failed;
    }
  } catch (error) {
    if (interrupted() === null) progress(error instanceof Error ? error.message : String(error));
  }
  abort.abort(new Error('the demo is over'));
  await ending.run();
  // A demo that was kept and then ended with Ctrl-C has done what it was asked to.
  process.exit(
    interrupted() === null || (options.keep && exitCode === 0)
      ? exitCode
      : 128 + constants.signals[interrupted() ?? 'SIGINT'],
  );
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

/** The first signal ends the demo in order, the second at once. Returns what has been heard. */
function interruption(abort: AbortController): () => 'SIGINT' | 'SIGTERM' | null {
  let heard: 'SIGINT' | 'SIGTERM' | null = null;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (heard !== null) process.exit(128 + constants.signals[name]);
      heard = name;
      progress(`${name}: ending everything`);
      abort.abort(new Error(`interrupted by ${name}`));
    });
  }
  return () => heard;
}

function progress(line: string): void {
  process.stderr.write(`demo: ${(performance.now() / 1000).toFixed(1).padStart(6)} s  ${line}\n`);
}
