import { chmodSync, existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assetPath, assetText, fingerprint } from '../assets.js';
import { discard, prepare } from '../cache/prepare.js';
import type { Surroundings } from '../options.js';
import { findPython } from '../tools/python.js';
import { runTool } from '../tools/run-tool.js';

const INSTALL_LIMIT_MS = 10 * 60_000;

/**
 * Prepares SecantusDB in a Python environment of its own in the cache, and returns an executable that behaves like mongod.
 * SecantusDB (GPL-2.0) is never linked or shipped: it is fetched from its registry and runs as a separate process.
 */
export async function prepareSecantus(at: Surroundings): Promise<string> {
  const folder = await prepare(
    {
      name: environmentName(),
      title: 'SecantusDB',
      limitMs: INSTALL_LIMIT_MS,
      build: (partial) => install(partial, at),
    },
    at,
  );
  return launcher(at.cache, folder);
}

/** To be called when the launcher could not import SecantusDB although the files looked right (a Python that was upgraded, say). */
export function discardSecantus(cache: string): void {
  const folder = join(cache, environmentName());
  if (existsSync(folder)) discard(folder);
}

function environmentName(): string {
  return `secantusdb-${fingerprint(assetText('secantus', 'requirements.txt'))}`;
}

async function install(folder: string, { environment, progress }: Surroundings): Promise<void> {
  const python = await findPython(environment);
  const started = Date.now();
  progress('SecantusDB: making a Python environment (about 150 MB, once)');
  await runTool({
    command: python,
    arguments: ['-m', 'venv', join(folder, 'venv')],
    environment,
    limitMs: INSTALL_LIMIT_MS,
  });
  progress('SecantusDB: installing it with pip');
  await runTool({
    command: join(folder, 'venv', 'bin', 'python'),
    arguments: [
      '-m',
      'pip',
      'install',
      '--no-input',
      '--disable-pip-version-check',
      '--requirement',
      assetPath('secantus', 'requirements.txt'),
    ],
    environment,
    limitMs: INSTALL_LIMIT_MS,
    onLine: (line) => {
      if (/^(Collecting|Installing)/.test(line)) progress(`SecantusDB: ${line.replace(/ \(from .*/, '')}`);
    },
  });
  progress(`SecantusDB: installed in ${Math.round((Date.now() - started) / 1000)} s`);
}

/** mongodb-memory-server runs one executable, so the interpreter and the script are put behind one. */
function launcher(cache: string, folder: string): string {
  const python = join(folder, 'venv', 'bin', 'python');
  const text = `#!/bin/sh\nexec ${quote(python)} ${quote(assetPath('secantus', 'mongod.py'))} "$@"\n`;
  const file = join(cache, `mongod-${fingerprint(text)}`);
  if (existsSync(file)) return file;
  const partial = `${file}.${process.pid}`;
  writeFileSync(partial, text);
  chmodSync(partial, 0o755);
  renameSync(partial, file);
  return file;
}

function quote(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}
