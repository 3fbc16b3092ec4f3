import { NightporterError, PARTIAL_SUFFIX, assertArchiveName, type ArchiveFiles } from '@nightporter/protocol';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Archive files in a folder that all who read them share. Written under another name, flushed and renamed, so that a file is whole or absent. */
export function createArchiveFolder(folder: string): ArchiveFiles {
  const pathOf = (name: string): string => {
    assertArchiveName(name);
    return join(folder, ...name.split('/'));
  };
  return {
    write: (name, content) => filed(`writing ${name}`, () => write(pathOf(name), content)),
    read: (name) => filed(`reading ${name}`, () => whereThere(() => readFile(pathOf(name)), null)),
    remove: (name) =>
      filed(`removing ${name}`, async () => {
        const path = pathOf(name);
        await rm(path, { force: true });
        await rm(`${path}${PARTIAL_SUFFIX}`, { force: true });
      }),
  };
}

async function write(path: string, content: Uint8Array): Promise<void> {
  const folder = dirname(path);
  const created = await mkdir(folder, { recursive: true });
  const partial = `${path}${PARTIAL_SUFFIX}`;
  const file = await open(partial, 'w');
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, path);
  await syncFolders(folder, created);
}

/** A name is durable once its folder is, and a new folder once the one that it stands in is. */
async function syncFolders(folder: string, created: string | undefined): Promise<void> {
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

async function whereThere<Found, Absent>(run: () => Promise<Found>, absent: Absent): Promise<Found | Absent> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return absent;
    throw error;
  }
}

async function filed<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof NightporterError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new NightporterError('NP_ARCHIVE_FAILED', `${operation} in the archive: ${why}`, { cause: error });
  }
}
