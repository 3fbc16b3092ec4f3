import type { OutboxDocument } from '@nightporter/contracts';
import type { EventId } from '@nightporter/protocol';

export type { ArchiveFiles } from '@nightporter/protocol';

/**
 * `archive_files`: `_id` is the name of a file. `writing`: the file is being written, and counts for nothing yet; the rows are in the outbox.
 * `archived`: from the moment on that the transaction which deletes the rows says so, they are in the file. `removing`: the file is
 * gone, or about to be: its writer died, or it has aged out. From `writing` it can only become one of the others, once.
 */
export type ArchiveFileDocument = ArchivedFile | PassingFile;

export interface ArchivedFile {
  readonly _id: string;
  readonly state: 'archived';
  /** When its first and its last row were published. */
  readonly from: Date;
  readonly to: Date;
  readonly rows: number;
  readonly bytes: number;
  /** Of the file, in hex. */
  readonly sha256: string;
  readonly topics: readonly string[];
  /** What it is found by: ids, and aggregate keys with `#` and the version. */
  readonly eventIds: readonly EventId[];
  readonly places: readonly string[];
}

export interface PassingFile {
  readonly _id: string;
  readonly state: 'writing' | 'removing';
}

/** Says in the folder itself what a file is, for whoever has lost the database. Written behind the file. */
export interface ArchiveManifest {
  readonly format: 'nightporter-archive-1';
  readonly file: string;
  readonly outbox: string;
  readonly publishedFrom: string;
  readonly publishedTo: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly topics: readonly string[];
}

export const DATA_SUFFIX = '.ndjson.gz';
export const MANIFEST_SUFFIX = '.manifest.json';

/** An outbox document as archives have it: published. */
export type PublishedDocument = OutboxDocument & { readonly publishedAt: Date };
