import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The same folder from src (tests) and from dist (built), since both lie one level below the package. */
const ASSETS = fileURLToPath(new URL('../assets/', import.meta.url));

/** The absolute path of a file that this package ships in its assets folder. */
export function assetPath(...parts: string[]): string {
  return join(ASSETS, ...parts);
}

export function assetText(...parts: string[]): string {
  return readFileSync(assetPath(...parts), 'utf8');
}

/** A short name for some content: what is prepared from it is kept under this name, so that new content is prepared anew. */
export function fingerprint(...content: string[]): string {
  const hash = createHash('sha256');
  for (const each of content) hash.update(`${String(each.length)}:${each}`);
  return hash.digest('hex').slice(0, 12);
}
