import { execFileSync } from 'node:child_process';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { buildPrograms, builtFile, runScript, until, type Program } from './programs.js';

const demos: Program[] = [];

beforeAll(() => {
  buildPrograms('scripts');
});
afterEach(async () => {
  for (const demo of demos.splice(0)) {
    if (!demo.isRunning) continue;
    // Its own end also ends what it started.
    demo.signal('SIGTERM');
    await demo.ended;
  }
});

function demo(...args: readonly string[]): Program {
  const program = runScript('demo', args);
  demos.push(program);
  return program;
}

function lastLine(text: string): Record<string, unknown> {
  return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as Record<string, unknown>;
}

/** Process ids of everything that a process has started, and that these have started. */
function descendants(processId: number): readonly number[] {
  const parents = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const childrenOf = (parent: number): readonly number[] =>
    parents.flatMap(([child, ppid]) => (ppid === parent && child !== undefined ? [child, ...childrenOf(child)] : []));
  return childrenOf(processId);
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch {
    return false;
  }
}

describe('the demo', () => {
  it('finds everything once and in order, although relay and worker are killed in between', async () => {
    const { exit, stdout, stderr } = await demo('--orders', '30', '--clients', '4', '--json').ended;
    const summary = lastLine(stdout);
    expect(summary, stdout + stderr).toMatchObject({
      ok: true,
      orders: 30,
      lost: 0,
      doubled: 0,
      misordered: 0,
      differences: 0,
    });
    expect(exit).toBe(0);
    expect(stdout).toMatch(/reconciled +30 orders \(\d+ completed, \d+ cancelled, \d+ created\): 0 differences/);
    expect(Object.keys(summary)).toEqual([
      'ok',
      'engine',
      'orders',
      'events',
      'published',
      'settled',
      'duplicates',
      'lost',
      'doubled',
      'misordered',
      'differences',
      'p50Ms',
      'p99Ms',
    ]);
    expect(summary['events']).toBeGreaterThanOrEqual(30);
    expect([summary['published'], summary['settled']]).toEqual([summary['events'], summary['events']]);
    // The broker is made to deliver messages again, so there must have been something to absorb.
    expect(summary['duplicates']).toBeGreaterThan(0);
    expect(stderr.match(/killed (relay|inventory-worker)-\d/g)).toHaveLength(4);
    expect(stdout).toContain('one event: ');
  });

  it('notices a worker whose inbox is switched off', async () => {
    const worker = builtFile('scripts/dist/demo/worker-without-inbox.js');
    const { exit, stdout, stderr } = await demo(
      '--orders',
      '20',
      '--clients',
      '4',
      '--no-kill',
      '--json',
      '--worker',
      worker,
    ).ended;
    expect(lastLine(stdout), stdout + stderr).toMatchObject({ ok: false });
    expect(lastLine(stdout)['doubled']).toBeGreaterThan(0);
    expect(exit).toBe(1);
  });

  it('ends everything that it has started when it is interrupted', async () => {
    const program = demo('--orders', '100000');
    await program.output(/services are ready/, 120_000);
    const started = descendants(program.processId);
    // One API, two relays, two inventory workers, one of each other worker, a database and a broker.
    expect(started.length).toBeGreaterThanOrEqual(12);
    program.signal('SIGINT');
    expect((await program.ended).exit).toBe(130);
    await until('all processes have ended', () => Promise.resolve(!started.some(isAlive)), 10_000);
  });

  it('places so many orders a second as a load, tells once a second how far it is, and reconciles at the end', async () => {
    const { exit, stdout, stderr } = await demo('--rate', '5', '--minutes', '0.1', '--json').ended;
    expect(lastLine(stdout), stdout + stderr).toMatchObject({ ok: true, orders: 30, differences: 0 });
    expect(exit).toBe(0);
    const looks = stderr.match(/\d+ of 30 orders \(\d+\/s\); behind: /g) ?? [];
    // Six seconds of load at least, whatever the machine; and never more than a line for each.
    expect(looks.length).toBeGreaterThanOrEqual(2);
    expect(stderr).not.toContain('killed ');
  });

  it('refuses what it cannot do', async () => {
    const { exit, stderr } = await demo('--orders', '0').ended;
    expect(exit).toBe(1);
    expect(stderr).toContain('a whole number from 1 to 100000');
    const load = await demo('--rate', '1000', '--minutes', '100').ended;
    expect(load).toMatchObject({ exit: 1, stderr: expect.stringContaining('accepted: up to 100000') as string });
  });
});
