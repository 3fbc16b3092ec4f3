import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { assetPath } from '../assets.js';

/**
 * Where jars, class archives and the Python environment are kept between runs: NIGHTPORTER_CACHE, else `.cache/embedded` of the
 * repository that this package lies in, else the user's cache folder. It may be deleted at any time.
 */
export function cacheFolder(environment: NodeJS.ProcessEnv): string {
  const configured = environment['NIGHTPORTER_CACHE'];
  if (configured !== undefined && configured !== '') return resolve(configured);
  const repository = repositoryOf(assetPath());
  if (repository !== undefined) return join(repository, '.cache', 'embedded');
  return join(homedir(), '.cache', 'nightporter');
}

function repositoryOf(folder: string): string | undefined {
  if (existsSync(join(folder, 'pnpm-workspace.yaml'))) return folder;
  const parent = dirname(folder);
  return parent === folder ? undefined : repositoryOf(parent);
}
