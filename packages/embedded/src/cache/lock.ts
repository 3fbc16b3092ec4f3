import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { NightporterError } from '@nightporter/protocol';
import { isAlive } from '../tools/processes.js';

const POLL_MS = 100;

interface LockRequest {
  file: string;
  limitMs: number;
  /** Called once, when another process holds the lock. */
  onWait: (holder: number) => void;
}

interface Holder {
  pid: number;
  host: string;
}

/**
 * Runs `work` while no other process does the same work. It spares work and nothing depends on it: what is prepared appears by
 * a rename, so two processes that both believe to hold the lock (one took over from a dead holder while the other did) only
 * do it twice.
 */
export async function withLock<T>(request: LockRequest, work: () => Promise<T>): Promise<T> {
  await acquire(request);
  try {
    return await work();
  } finally {
    rmSync(request.file, { force: true });
  }
}

async function acquire({ file, limitMs, onWait }: LockRequest): Promise<void> {
  const deadline = Date.now() + limitMs;
  let told = false;
  while (!tryCreate(file)) {
    const holder = readHolder(file);
    if (holder !== undefined && isGone(holder)) {
      rmSync(file, { force: true });
      continue;
    }
    if (holder !== undefined && !told) onWait(holder.pid);
    told ||= holder !== undefined;
    if (Date.now() > deadline) {
      throw new NightporterError(
        'NP_EMBEDDED_PREPARE_FAILED',
        `Process ${holder?.pid ?? 'unknown'} has held ${file} for more than ${limitMs} ms; end it or delete the file`,
      );
    }
    await delay(POLL_MS);
  }
}

function tryCreate(file: string): boolean {
  try {
    writeFileSync(file, JSON.stringify({ pid: process.pid, host: hostname() } satisfies Holder), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Undefined while the holder is still writing, or when it has just let go. */
function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder;
  } catch {
    return undefined;
  }
}

function isGone(holder: Holder): boolean {
  return holder.host === hostname() && !isAlive(holder.pid);
}
