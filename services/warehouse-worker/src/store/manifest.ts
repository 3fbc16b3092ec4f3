import { NightporterError } from '@nightporter/protocol';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { TABLE_NAMES, type Row, type TableName } from '../domain/tables.js';
import { createWarehouseFolder, type WarehouseFolder } from './folder.js';
import { decodeParquet } from './parquet.js';

export const MANIFEST = 'manifest.json';

const manifestFile = z.object({
  name: z.string(),
  table: z.enum(TABLE_NAMES as readonly [TableName, ...TableName[]]),
  day: z.string(),
  rows: z.int(),
  bytes: z.int(),
  sha256: z.string(),
});
const manifest = z.object({
  format: z.literal('nightporter-warehouse-1'),
  warehouse: z.string(),
  revision: z.int(),
  files: z.array(manifestFile),
});

/** What the warehouse consists of. Readers read the files that it names, and no other. */
export type Manifest = z.infer<typeof manifest>;
export type ManifestFile = z.infer<typeof manifestFile>;

export function encodeManifest({ files, revision, warehouse }: Omit<Manifest, 'format'>): Uint8Array {
  const named = files.map(({ name, table, day, rows, bytes, sha256 }) => ({ name, table, day, rows, bytes, sha256 }));
  const ordered = named.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const whole: Manifest = { format: 'nightporter-warehouse-1', warehouse, revision, files: ordered };
  return Buffer.from(`${JSON.stringify(whole)}\n`);
}

/** Null where nothing was ever landed in the folder. */
export async function readManifest(folder: WarehouseFolder): Promise<Manifest | null> {
  const content = await folder.read(MANIFEST);
  if (content === null) return null;
  try {
    return manifest.parse(JSON.parse(Buffer.from(content).toString()));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new NightporterError('NP_WAREHOUSE_FAILED', `${MANIFEST} is not what a warehouse-worker wrote: ${why}`, {
      cause: error,
    });
  }
}

/** A file that the manifest names, checked against it. */
export async function readFileOf(
  folder: WarehouseFolder,
  { name, table, rows, sha256 }: Pick<ManifestFile, 'name' | 'table' | 'rows' | 'sha256'>,
): Promise<readonly Row[]> {
  const content = await folder.read(name);
  if (content === null) throw broken(`${name} is missing`);
  if (sha256Of(content) !== sha256) throw broken(`${name} is not what was written: its SHA-256 is another`);
  const found = await decodeParquet(table, content);
  if (found.length !== rows) throw broken(`${name} has ${found.length} rows and should have ${rows}`);
  return found;
}

/** The rows of one table, file by file, as the manifest is now. A file is compacted away only long after it has left the manifest. */
export async function* readTable(folder: string, table: TableName): AsyncGenerator<readonly Row[]> {
  const place = createWarehouseFolder(folder);
  for (const file of (await readManifest(place))?.files ?? []) {
    if (file.table === table) yield await readFileOf(place, file);
  }
}

export function sha256Of(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

function broken(what: string): NightporterError {
  return new NightporterError('NP_WAREHOUSE_FAILED', `A file of the warehouse cannot be read: ${what}.`);
}
