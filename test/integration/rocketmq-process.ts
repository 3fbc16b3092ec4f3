import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { repository } from './embedded-processes.js';

export interface Scenario {
  readonly endpoints: string;
  readonly topic: string;
  readonly group: string;
  /** Run by the process as an async function; in scope: the adapters, a request, `say` and `told`. */
  readonly run: string;
}

export interface FinishedProcess {
  readonly code: number | null;
  readonly lines: readonly string[];
  readonly errors: string;
  /** What the process has left in its home folder. */
  readonly home: readonly string[];
  /** From the last line to the end of the process. */
  readonly lingeredMs: number;
}

const LIMIT_MS = 60_000;

/** What every scenario can use. The built package, for a plain Node process. */
function script({ endpoints, topic, group, run }: Scenario): string {
  const entry = pathToFileURL(join(repository, 'packages/rocketmq/dist/index.js')).href;
  return `
    const { createPublisher, createSubscriber } = await import(${JSON.stringify(entry)});
    const { createInterface } = await import('node:readline');
    const input = createInterface({ input: process.stdin });
    const heard = new Promise((resolve) => input.once('line', resolve));
    /** Resolves once the test has written a line; then the input holds the process no longer. */
    const told = async () => { await heard; input.close(); process.stdin.unref(); };
    const say = (line) => process.stdout.write(line + '\\n');
    const timed = async (work) => { const from = performance.now(); await work(); return Math.round(performance.now() - from); };
    const endpoints = ${JSON.stringify(endpoints)}, topic = ${JSON.stringify(topic)}, group = ${JSON.stringify(group)};
    const request = { relay: 'r', epoch: 1, row: { namespace: 'n', eventId: 'e', source: 's', aggregateType: 't', aggregateId: 'a',
      aggregateVersion: 1, eventType: 'E', eventVersion: 1, topic, eventKey: 'k', payload: {}, digest: 'd', headers: {}, slot: 0,
      status: 'PENDING', retryCount: 0, revision: 1, unanswered: false, occurredAt: '2026-01-02T03:04:05.678Z', dueInMs: 0, form: 'original' } };
    ${run}
  `;
}

/**
 * Runs a scenario in a process of its own, which must end by itself. `onFirstLine` runs when the process has said its first line,
 * and the process is told when that is done.
 */
export async function runProcess(
  scenario: Scenario,
  onFirstLine: () => Promise<void> = () => Promise.resolve(),
): Promise<FinishedProcess> {
  const home = mkdtempSync(join(tmpdir(), 'nightporter-home-'));
  const child = spawn(process.execPath, ['--input-type=module', '-e', script(scenario)], {
    cwd: repository,
    env: { ...process.env, HOME: home },
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  const lines: string[] = [];
  let errors = '';
  let lastLineAt = performance.now();
  child.stderr.on('data', (data: Buffer) => (errors += data.toString()));
  const output = createInterface({ input: child.stdout });
  output.on('line', (line) => {
    lines.push(line);
    lastLineAt = performance.now();
  });
  const closed = once(child, 'close');
  try {
    await Promise.race([once(output, 'line'), closed]);
    await onFirstLine();
    child.stdin.end('go\n');
    const [code] = (await closed) as [number | null];
    return { code, lines, errors, home: readdirSync(home), lingeredMs: performance.now() - lastLineAt };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
