import type { TableName } from './tables.js';

/** A file that the manifest names. */
export interface LiveFile {
  /** Its path in the warehouse's folder: `events/day=2026-11-30/….parquet`. */
  readonly name: string;
  readonly table: TableName;
  readonly day: string;
  readonly rows: number;
  readonly bytes: number;
  /** Of the file, in hex. */
  readonly sha256: string;
  /** 0: landed; n + 1: merged from files of level n at most. */
  readonly level: number;
  /** When it became part of the warehouse, on the database's clock. */
  readonly addedAtMs: number;
}

export interface CompactionLimits {
  /** So many files of one level, table and day become one of the next level. */
  readonly filesMin: number;
  /** The most rows of a merged file. */
  readonly rowsMax: number;
  /** A day to which nothing was added for so long becomes one file, as far as `rowsMax` lets it. */
  readonly coldMs: number;
}

export type Compaction = { readonly kind: 'none' } | { readonly kind: 'merge'; readonly files: readonly LiveFile[] };

/** The next merge, if any is worth its work. By levels, so that a row is written again only a logarithmic number of times. */
export function compactionOf(files: readonly LiveFile[], nowMs: number, limits: CompactionLimits): Compaction {
  for (const partition of groupBy(files, ({ day, table }) => `${table} ${day}`)) {
    for (const level of groupBy(partition, (file) => String(file.level))) {
      const chosen = thatFit(level, limits);
      if (level.length >= limits.filesMin && chosen.length > 1) return { kind: 'merge', files: chosen };
    }
    const isCold = partition.every(({ addedAtMs }) => nowMs - addedAtMs >= limits.coldMs);
    const chosen = isCold ? thatFit(partition, limits) : [];
    if (chosen.length > 1) return { kind: 'merge', files: chosen };
  }
  return { kind: 'none' };
}

/** The smallest files first: a file that is full stays as it is. */
function thatFit(files: readonly LiveFile[], { rowsMax }: CompactionLimits): readonly LiveFile[] {
  const chosen: LiveFile[] = [];
  let rows = 0;
  for (const file of files.toSorted((one, other) => one.rows - other.rows)) {
    if (rows + file.rows > rowsMax) break;
    rows += file.rows;
    chosen.push(file);
  }
  return chosen;
}

function groupBy(files: readonly LiveFile[], keyOf: (file: LiveFile) => string): readonly (readonly LiveFile[])[] {
  const groups = new Map<string, LiveFile[]>();
  for (const file of files) {
    const key = keyOf(file);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [file]);
    else group.push(file);
  }
  return [...groups.values()];
}
