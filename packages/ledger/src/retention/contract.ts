/**
 * Retention of one producer's outbox: published rows that are old enough, and that every group registered for their topic has passed,
 * leave it in batches, for good or into an archive.
 *
 * A batch is one transaction that raises the revision of `registry` in `groups`, reads the watermarks anew and moves what still may go,
 * so that it conflicts with the registration of a group, and a crash leaves a row in exactly one place. Only rows that are PUBLISHED go.
 */
import type { ArchiveFiles, BucketSize, Operator } from '@nightporter/mongo';
import type { Namespace } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import type { Held } from './policy.js';

export type Destination =
  | { readonly kind: 'delete' }
  /** A collection for each day or month of publication, beside the outbox. */
  | { readonly kind: 'collections'; readonly bucket: BucketSize }
  /** Compressed files, a batch each, with a manifest beside, named in the catalogue `archive_files`. */
  | { readonly kind: 'files'; readonly files: ArchiveFiles };

export interface RetentionOptions {
  readonly client: MongoClient;
  /** The outbox, `database.collection`. */
  readonly namespace: Namespace;
  readonly destination: Destination;
  /** How long a published row stays in the outbox at least. */
  readonly afterMs: number;
  /** How long what is archived stays, from its publication on; null: for ever. Default null. */
  readonly archiveMs?: number | null;
  /** Rows of a batch at most. Default 1,000. */
  readonly batchRowsMax?: number;
  /** Bytes of a batch at most, where it has more than one row. Default 8 MiB. */
  readonly batchBytesMax?: number;
  /** How long it rests after a batch, for the sake of the writers. Default 100 ms. */
  readonly pauseMs?: number;
  /** Rows so close below a watermark stay: at least as much as the groups' sweeps read again. Default 60,000 ms, as theirs. */
  readonly marginMs?: number;
  /**
   * How long a batch waits for another transaction that is open, the registration of a group for instance, before the run ends with
   * NP_STORE_UNAVAILABLE. That of a process that was killed stays open for 60 s, unless the server is configured otherwise. Default 90,000 ms.
   */
  readonly conflictMs?: number;
}

export interface RetentionRequest {
  /** Ends the run after the batch in hand; one that waits for another transaction is given up, and nothing of it is moved. */
  readonly signal?: AbortSignal;
  /** Takes whatever is old enough, whether the groups are past it or not. What they miss is then explained to them as deleted. */
  readonly forced?: boolean;
  /** Who starts the run, where it is a person: put on record. A forced run needs one. */
  readonly operator?: Operator;
  /** Told after each batch, which has committed then; the next one waits for what it returns. What it throws ends the run. */
  readonly progress?: (progress: RetentionProgress) => void | Promise<void>;
}

export interface RetentionProgress {
  readonly rows: number;
  readonly bytes: number;
  readonly batches: number;
  /** When the last row of the last batch was published. */
  readonly publishedMs: number;
}

export interface RetentionResult {
  readonly kind: 'completed' | 'interrupted';
  /** Rows that left the outbox. */
  readonly rows: number;
  /** What they took there. */
  readonly bytes: number;
  readonly batches: number;
  /** Archives that were old enough, and are gone. */
  readonly dropped: readonly DroppedArchive[];
  /** Why rows that are old enough stay, by topic: among the oldest 1,000 that are left. */
  readonly held: readonly Held[];
  /** The same of archives, by their names. */
  readonly heldArchives: readonly (Held & { readonly name: string })[];
}

export interface DroppedArchive {
  readonly name: string;
  readonly rows: number;
}

export interface Retention {
  /**
   * Moves what may go. Rejects with NP_STORE_UNAVAILABLE: the batches before stand, and the next run goes on behind them; and with
   * NP_ACTION_INVALID for a forced run that nobody signs.
   */
  run(request?: RetentionRequest): Promise<RetentionResult>;
}
