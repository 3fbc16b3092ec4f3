import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { NightporterError } from '@nightporter/protocol';
import { isAlive } from './tools/processes.js';

const PREFIX = 'nightporter-stack-';
const OWNER = 'owner.json';

interface Owner {
  pid: number;
  host: string;
}

/** Where a server keeps data and logs. */
export interface DataFolder {
  path: string;
  /** Throwaway data need no orderly stop of the server. */
  throwaway: boolean;
  /** Gives the folder up: removed if it is throwaway, else free for the next start. */
  release: () => void;
}

/**
 * Takes the given folder, or makes a throwaway one. Throws NP_EMBEDDED_START_FAILED when a living process uses the given one.
 * Throwaway folders of processes that were killed are removed here, since nobody else will.
 */
export function takeDataFolder(given: string | undefined): DataFolder {
  if (given === undefined) {
    removeAbandoned();
    const path = mkdtempSync(join(tmpdir(), PREFIX));
    writeOwner(path);
    return {
      path,
      throwaway: true,
      release: () => {
        remove(path);
      },
    };
  }
  const path = resolve(given);
  mkdirSync(path, { recursive: true });
  const owner = readOwner(path);
  if (owner !== undefined && !isGone(owner)) {
    throw new NightporterError(
      'NP_EMBEDDED_START_FAILED',
      `The data folder ${path} is in use by process ${owner.pid} on ${owner.host}`,
    );
  }
  writeOwner(path);
  return {
    path,
    throwaway: false,
    release: () => {
      rmSync(join(path, OWNER), { force: true });
    },
  };
}

function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const path = join(tmpdir(), name);
    const owner = readOwner(path);
    if (owner !== undefined && isGone(owner)) remove(path);
  }
}

/** A server that is on its way out may still write into the folder, hence the retries. */
function remove(path: string): void {
  rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

function writeOwner(path: string): void {
  writeFileSync(join(path, OWNER), JSON.stringify({ pid: process.pid, host: hostname() } satisfies Owner));
}

function readOwner(path: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(join(path, OWNER), 'utf8')) as Owner;
  } catch {
    return undefined;
  }
}

/** Only processes of this machine can be known to be gone. */
function isGone(owner: Owner): boolean {
  return owner.host === hostname() && !isAlive(owner.pid);
}
