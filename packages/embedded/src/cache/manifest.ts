import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const MANIFEST = 'manifest.json';

/** Each file of a prepared folder with its size in bytes. */
type Manifest = Record<string, number>;

/** Either the folder is as it was when it was made, or what is wrong with it. */
export type Inspection = { kind: 'intact' } | { kind: 'absent' } | { kind: 'broken'; why: string };

/** Records what the folder holds, as the last thing that its making does. */
export function writeManifest(folder: string): void {
  const manifest: Manifest = {};
  for (const file of filesOf(folder)) manifest[relative(folder, file)] = statSync(file).size;
  writeFileSync(join(folder, MANIFEST), JSON.stringify(manifest));
}

/**
 * Compares a prepared folder with its manifest. Sizes are compared and content is not: this runs at every start, and it is
 * meant for half-deleted folders and full disks, not for tampering.
 */
export function inspect(folder: string): Inspection {
  if (sizeOf(folder) === undefined) return { kind: 'absent' };
  const manifest = readManifest(folder);
  if (manifest === undefined) return { kind: 'broken', why: 'it has no readable manifest' };
  for (const [file, size] of Object.entries(manifest)) {
    const found = sizeOf(join(folder, file));
    if (found === undefined) return { kind: 'broken', why: `${file} is missing` };
    if (found !== size) return { kind: 'broken', why: `${file} has ${found} bytes instead of ${size}` };
  }
  return { kind: 'intact' };
}

function readManifest(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8')) as Manifest;
  } catch {
    return undefined;
  }
}

/** Synchronous on purpose: some thousand calls take 20 ms this way, and several times that one by one through the thread pool. */
function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** Python writes its bytecode whenever it likes, so that is left out. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === '__pycache__' ? [] : filesOf(path);
    return statSync(path).isFile() ? [path] : [];
  });
}
