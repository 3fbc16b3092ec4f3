import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const LISTEN = '0A';
export const repository = fileURLToPath(new URL('../../', import.meta.url));

/** The addresses on which a process listens, as hexadecimal words of /proc/net/tcp and tcp6. */
export function listeningAddresses(processId: number): string[] {
  const inodes = new Set(
    readdirSync(`/proc/${processId}/fd`).map((descriptor) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${processId}/fd/${descriptor}`))?.[1];
      } catch {
        return undefined; // closed since it was listed
      }
    }),
  );
  return ['/proc/net/tcp', '/proc/net/tcp6']
    .flatMap((file) => readFileSync(file, 'utf8').trim().split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === LISTEN && inodes.has(fields[9]))
    .map((fields) => fields[1]?.split(':')[0] ?? '');
}

/** 127.0.0.1, the same mapped into IPv6, and ::1. */
export const LOOPBACK_ADDRESSES = ['0100007F', '0000000000000000FFFF00000100007F', '00000000000000000000000001000000'];

/** Every descendant of a process that is alive, with what it runs. */
export function descendants(processId: number): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/.test(name) ? parentOf(Number(name)) : undefined;
    if (parent !== undefined) parents.set(Number(name), parent);
  }
  const found: number[] = [];
  for (let next = [processId]; next.length > 0;) {
    next = [...parents].filter(([, parent]) => next.includes(parent)).map(([child]) => child);
    found.push(...next);
  }
  return found;
}

function parentOf(processId: number): number | undefined {
  try {
    // The name of the program stands in brackets and may hold anything.
    return Number(
      readFileSync(`/proc/${processId}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[1],
    );
  } catch {
    return undefined;
  }
}

/** A zombie has ended: only its exit code is left. */
export function isRunning(processId: number): boolean {
  try {
    return !/^.*\) Z/s.test(readFileSync(`/proc/${processId}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

export async function expectGone(processIds: number[], withinMs: number): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (processIds.some(isRunning) && Date.now() < deadline) await delay(50);
  expect(processIds.filter(isRunning)).toEqual([]);
}

/** Compiles a project with its references, so that a plain Node process can run it. */
export async function build(project: string): Promise<void> {
  const compiler = spawn(process.execPath, ['node_modules/typescript/bin/tsc', '-b', project], {
    cwd: repository,
    stdio: 'ignore',
  });
  await once(compiler, 'close');
}

/** Starts a Node process in the repository and resolves with its first line on standard output. */
export async function startNode(parameters: string[]): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(process.execPath, parameters, { cwd: repository, stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  const line = once(createInterface({ input: child.stdout }), 'line');
  const end = once(child, 'close').then(() => {
    throw new Error(`the process ended before its first line:\n${errors}`);
  });
  const [first] = (await Promise.race([line, end])) as [string];
  end.catch(() => undefined); // its end is expected from here on
  return { child, line: first };
}
