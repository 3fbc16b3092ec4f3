import type { TableName } from '../domain/tables.js';
import { MANIFEST } from '../store/manifest.js';

/** What a cut-off write has left: the name that it was for, and what made that its own. */
const PARTIAL = String.raw`(\.[A-Za-z0-9-]+)?\.partial`;
const FILE = new RegExp(String.raw`/(?<epoch>\d+)-[^/]+\.parquet(${PARTIAL})?$`);
const MANIFEST_PARTIAL = new RegExp(`^${MANIFEST.replace('.', String.raw`\.`)}${PARTIAL}$`);

/** The name says which turn writes the file, so that nobody takes it for one of an older turn. */
export function fileNameOf(file: { table: TableName; day: string; epoch: number; id: string }): string {
  return `${file.table}/day=${file.day}/${file.epoch}-${file.id}.parquet`;
}

/**
 * Whether a file that is not on record was left by a turn before that of `epoch`, and will never be on record. What a newer turn has written may be
 * in a transaction now. Files of other kinds are not ours to remove. A manifest that is not whole counts for nobody, whoever writes it:
 * its writer fails without it, and its next turn publishes.
 */
export function wasLeftBefore(epoch: number, name: string): boolean {
  const writtenIn = FILE.exec(name)?.groups?.['epoch'];
  return writtenIn === undefined ? MANIFEST_PARTIAL.test(name) : Number(writtenIn) < epoch;
}
