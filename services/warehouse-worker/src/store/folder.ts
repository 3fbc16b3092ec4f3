import { NightporterError } from '@nightporter/protocol';
import { randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { mkdir, open, readFile, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A file that is still being written, or that a crash has left so: nobody reads it, whatever it is called without this. */
const PARTIAL = '.partial';

/** `events/day=2026-11-30/….parquet`, or `manifest.json`. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._=-]*(\/[A-Za-z0-9_-][A-Za-z0-9._=-]*)*$/;

/**
 * The folder of a warehouse. `write` resolves once the content is durable under its name: written under one of its own, flushed, renamed,
 * and the folders flushed; so that a file is whole or absent, and a file that was there before is replaced in one step. `list` names everything
 * that is there, whole or cut off. Rejects with NP_WAREHOUSE_FAILED.
 */
export interface WarehouseFolder {
  /** Resolves to the version of what it has written, as {@link versionOf} tells it while nobody else has replaced the file. */
  write(name: string, content: Uint8Array): Promise<string>;
  /** Null where nothing of that name is. */
  read(name: string): Promise<Uint8Array | null>;
  /** Changes whenever the file is replaced; null where nothing of that name is. */
  versionOf(name: string): Promise<string | null>;
  list(): Promise<readonly string[]>;
  /** Removes files; those that are not there are no error. */
  remove(names: readonly string[]): Promise<void>;
}

export function createWarehouseFolder(folder: string): WarehouseFolder {
  const pathOf = (name: string): string => {
    if (NAME.test(name)) return join(folder, ...name.split('/'));
    throw new NightporterError(
      'NP_WAREHOUSE_FAILED',
      `A file of the warehouse cannot be called ${JSON.stringify(name)}.`,
    );
  };
  return {
    write: (name, content) => filed(`writing ${name}`, folder, () => writeDurably(pathOf(name), content)),
    read: (name) => filed(`reading ${name}`, folder, () => whereThere(() => readFile(pathOf(name)))),
    versionOf: (name) =>
      filed(`looking at ${name}`, folder, async () => {
        const found = await whereThere(() => stat(pathOf(name)));
        return found === null ? null : versionIn(found);
      }),
    list: () =>
      filed('listing', folder, async () => {
        const entries = await whereThere(() => readdir(folder, { recursive: true, withFileTypes: true }));
        return (entries ?? [])
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name).slice(join(folder, '/').length));
      }),
    remove: (names) =>
      filed('removing', folder, async () => {
        for (const name of names) await rm(pathOf(name), { force: true });
      }),
  };
}

/** A file keeps it when it is renamed. */
function versionIn({ ino, mtimeMs, size }: Stats): string {
  return `${ino} ${mtimeMs} ${size}`;
}

async function writeDurably(path: string, content: Uint8Array): Promise<string> {
  const folder = dirname(path);
  const created = await mkdir(folder, { recursive: true });
  // Of this write alone: a turn that wakes when it is over may write a file of the same name, and would cut off what is here before it is renamed.
  const partial = `${path}.${randomUUID()}${PARTIAL}`;
  let version: string;
  try {
    // Before it is renamed: by its name somebody else's may be found already.
    version = await writeFlushed(partial, content);
    await rename(partial, path);
  } catch (error) {
    // Nobody would write over it: tried again and again on a full disk, it would be one file more each time.
    await rm(partial, { force: true });
    throw error;
  }
  await flushFolders(folder, created);
  return version;
}

async function writeFlushed(path: string, content: Uint8Array): Promise<string> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(content);
    await file.sync();
    return versionIn(await file.stat());
  } finally {
    await file.close();
  }
}

/** A name is durable once its folder is, and a new folder once the one that it stands in is. */
async function flushFolders(folder: string, created: string | undefined): Promise<void> {
  const last = created === undefined ? folder : dirname(created);
  for (let current = folder; ; current = dirname(current)) {
    const handle = await open(current, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (current === last || current === dirname(current)) return;
  }
}

async function whereThere<Found>(run: () => Promise<Found>): Promise<Found | null> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

async function filed<Result>(operation: string, folder: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof NightporterError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new NightporterError('NP_WAREHOUSE_FAILED', `${operation} in the warehouse ${folder}: ${why}`, {
      cause: error,
    });
  }
}
