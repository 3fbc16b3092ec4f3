import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isAlive } from '../tools/processes.js';
import type { Progress } from '../options.js';
import { withLock } from './lock.js';
import { inspect, writeManifest } from './manifest.js';

export interface Recipe {
  /** The folder's name in the cache. It names the content too: a new version or asset has a new name. */
  name: string;
  /** What is prepared, for progress lines: "RocketMQ 5.5.0". */
  title: string;
  /** Fills the empty folder that it is given. The folder is renamed afterwards. */
  build: (folder: string) => Promise<void>;
  limitMs: number;
}

/**
 * Returns the folder that the recipe describes, making it if it is absent or broken. It appears by a rename once it is complete,
 * so that no process ever sees half of it, however the making ended.
 */
export async function prepare(recipe: Recipe, at: { cache: string; progress: Progress }): Promise<string> {
  const folder = join(at.cache, recipe.name);
  if (inspect(folder).kind === 'intact') return folder;
  mkdirSync(at.cache, { recursive: true });
  const lock = {
    file: `${folder}.lock`,
    limitMs: recipe.limitMs,
    onWait: (holder: number) => {
      at.progress(`${recipe.title}: waiting for process ${holder}, which is preparing it`);
    },
  };
  return withLock(lock, async () => {
    const found = inspect(folder);
    if (found.kind === 'intact') return folder;
    if (found.kind === 'broken') {
      at.progress(`${recipe.title}: the copy in the cache is broken (${found.why}), making it anew`);
      discard(folder);
    }
    removeAbandoned(folder);
    await build(recipe, folder);
    return folder;
  });
}

/** Forgets a prepared folder that turned out to be useless, so that the next `prepare` makes it anew. */
export function discard(folder: string): void {
  const aside = partialName(folder);
  renameSync(folder, aside);
  rmSync(aside, { recursive: true, force: true });
}

async function build(recipe: Recipe, folder: string): Promise<void> {
  const partial = partialName(folder);
  mkdirSync(partial);
  try {
    await recipe.build(partial);
    writeManifest(partial);
    publish({ partial, folder });
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/** A rename onto a folder that is not empty is refused; then another process was quicker, and its folder is as good. */
function publish({ partial, folder }: { partial: string; folder: string }): void {
  try {
    renameSync(partial, folder);
  } catch (error) {
    if (inspect(folder).kind !== 'intact') throw error;
  }
}

function partialName(folder: string): string {
  return `${folder}.partial-${process.pid}-${randomBytes(4).toString('hex')}`;
}

/** Removes what processes that died while they built this folder have left behind. */
function removeAbandoned(folder: string): void {
  const prefix = `${basename(folder)}.partial-`;
  for (const name of readdirSync(dirname(folder))) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number.parseInt(name.slice(prefix.length), 10);
    if (pid !== process.pid && !isAlive(pid)) rmSync(join(dirname(folder), name), { recursive: true, force: true });
  }
}
