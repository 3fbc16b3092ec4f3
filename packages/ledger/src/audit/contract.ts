/**
 * The audit: that what was committed was published, and what was published is settled in every group, or the name of each difference.
 *
 * It walks published rows in the order of publication and reads, a batch at a time, what each group has of them; so its memory does not
 * depend on how many there are, and nothing is asked for event by event. A mark for each group says up to where all was compared and found settled, apart from a
 * list of open events that are looked at again: an audit that is not `full` reads only what is new. A full one reads everything again, and
 * also compares heads with rows (contiguous versions) and inboxes with the ledger (phantoms), as ordered streams that are merged.
 */
import type { AggregateKey } from '@nightporter/protocol';

export type DifferenceKind =
  /** Committed, and not published for too long. */
  | 'unpublished'
  /** The relay has given it up. */
  | 'dead-in-relay'
  /** The row is not what its digest says. */
  | 'altered-row'
  /** The row's status and its other fields contradict each other: somebody has changed it by hand, and nobody carries it on. */
  | 'altered-status'
  /** A document in the outbox that no `emit()` has written. */
  | 'foreign'
  /** Versions that the head counts and that are in no outbox and no archive, though retention has not deleted them. */
  | 'gap'
  /** Retention has deleted versions that the group had not settled. */
  | 'deleted-unsettled'
  /** Published, and the group has neither settled nor parked it. */
  | 'missing'
  /** The group has settled something else than what was published. */
  | 'altered'
  /** The group has another event at its version. */
  | 'conflict'
  | 'dead-letter'
  /** Parked for too long: for a retry, behind another, or for a gap. */
  | 'unsettled'
  /** A message without a place in any sequence that nobody has dismissed. */
  | 'set-aside'
  /** The group has settled an event that no ledger has. */
  | 'phantom'
  /** The group's position is behind what it has settled. */
  | 'position-behind'
  /** The group has applied what was published as a tombstone. */
  | 'outcome'
  /** Nobody says where the group keeps its data. */
  | 'not-audited';

export interface Difference {
  readonly kind: DifferenceKind;
  /** The producer's database. */
  readonly producer: string;
  readonly group: string | null;
  readonly eventId: string | null;
  readonly aggregate: AggregateKey | null;
  readonly version: number | null;
  /** What it is, in whole sentences. */
  readonly text: string;
  /** The command, or the deed, that mends it or tells more; null where somebody has to judge first. */
  readonly mend: string | null;
}

export interface GroupAudit {
  readonly group: string;
  readonly producer: string;
  /** Everything published up to then was compared, in this audit or in those before it. */
  readonly comparedTo: Date;
  /** Of all events compared so far, and of those of this run. */
  readonly published: number;
  readonly publishedInThisRun: number;
  readonly settled: number;
  /** Before the group's start, so none of its business. */
  readonly beforeStart: number;
  /** Settled long ago: the position says so, and the record has expired. */
  readonly expired: number;
  /** On their way: too young to be called a difference. */
  readonly inFlight: number;
  /** Neither settled nor on their way. */
  readonly different: number;
  /** Whether the next audit goes on here. */
  readonly isMarked: boolean;
}

export interface ProducerAudit {
  readonly producer: string;
  /** What the heads count. */
  readonly committed: number;
  readonly unpublished: number;
  /** Present in outbox and archives, published or not. Null unless the audit is full. */
  readonly present: number | null;
  /** Deleted by retention. Null unless the audit is full. */
  readonly deleted: number | null;
}

export interface AuditReport {
  readonly kind: 'completed' | 'interrupted';
  readonly isFull: boolean;
  readonly startedAt: Date;
  readonly elapsedMs: number;
  readonly producers: readonly ProducerAudit[];
  readonly groups: readonly GroupAudit[];
  /** The first ones; `differencesTotal` counts all. */
  readonly differences: readonly Difference[];
  readonly differencesTotal: number;
  readonly notes: readonly string[];
}

export interface AuditRequest {
  /** Reads everything again. Default: what is new since the last audit. */
  readonly full?: boolean;
  /** Only these groups. Default: all that are registered. */
  readonly groups?: readonly string[];
  /** Only these of the deployment's producers, by their databases; what a group has of others is still known. Default: all. */
  readonly producers?: readonly string[];
  /** What happened less long ago may be under way. Default 60,000 ms. */
  readonly graceMs?: number;
  /** What is published less long ago is left to the next audit: a mark may become visible late. Default 10,000 ms. */
  readonly lagMs?: number;
  /** How long the groups keep records of their inbox, as their workers have it. Default 90 days. */
  readonly inboxRetentionMs?: number;
  /** Differences that are told one by one. Default 1,000. */
  readonly differencesMax?: number;
  readonly signal?: AbortSignal;
  /** Told after each batch; the next one waits for what it returns. */
  readonly progress?: (progress: { readonly rows: number; readonly producer: string }) => void | Promise<void>;
}
