/**
 * What the relay engine needs of the world. Each port's comment is its contract; one conformance suite runs on the
 * in-memory and on the real adapter of each.
 *
 * Failures, for every port unless it says otherwise: a call that could not be carried out, or whose outcome is unknown,
 * rejects with a NightporterError NP_STORE_UNAVAILABLE (database) or a {@link PublishError} (broker). Such a call may
 * still execute later, after its caller has given up or died: every write is conditional so that a late one does no harm.
 */
import type { OutboxRow, OutboxStatus, PublicationForm } from '@nightporter/contracts';
import {
  NightporterError,
  type AggregateKey,
  type Epoch,
  type EventId,
  type Namespace,
  type Pause,
  type ResumeToken,
  type Slot,
} from '@nightporter/protocol';

/** Names a range of slots that is leased as one; the key of `relay_leases` and `relay_checkpoints`. */
export type ShardId = string;

export type LeaseOutcome =
  /** Ours. `takenOver` is true when the epoch was raised: the lease was free, expired or somebody else's. */
  | { readonly kind: 'held'; readonly epoch: Epoch; readonly takenOver: boolean }
  | { readonly kind: 'refused'; readonly owner: string };

/**
 * Leases on the database's clock. `acquire` takes a free or expired lease and raises its epoch, or renews our own
 * without raising it; an own lease that has expired is taken over anew, with a new epoch. `release` expires the lease at
 * once if `owner` still holds it at `epoch`, and otherwise does nothing.
 */
export interface LeaseStore {
  acquire(request: { shard: ShardId; owner: string; durationMs: number }): Promise<LeaseOutcome>;
  release(request: { shard: ShardId; owner: string; epoch: Epoch }): Promise<void>;
}

/** The shards that all slots are divided into, named by their ids. */
export type ShardMap = readonly ShardId[];

/**
 * The instances that share shards, on the database's clock. `announce` says that `instance` lives for `durationMs` from now and has the shards
 * of `map`, and resolves with all that live now and have the same, itself included. `leave` takes that back at once. A call that executes late makes an instance look alive for
 * `durationMs` more, which costs time and nothing else: what may be sent is decided by leases.
 */
export interface InstanceRegistry {
  announce(request: { instance: string; map: ShardMap; durationMs: number }): Promise<readonly string[]>;
  leave(request: { instance: string }): Promise<void>;
}

export type ShardMapOutcome =
  | { readonly kind: 'agreed' }
  /** Another division of the slots is served, or was agreed on just now; `reason` says which, for people. */
  | { readonly kind: 'other'; readonly reason: string };

/**
 * Which division of the slots is served: one document with a revision for all relays of the database. No lease of a shard outside the map may
 * be alive where a shard of it is served.
 *
 * `agree` is asked before a lease is asked for. Another map gives way to `map` where none of its leases is alive and it was agreed on
 * `settleMs` ago or longer (database clock), by one update that is conditional on the revision that was read. `check` is asked
 * after a lease was taken over and before anything is done in its epoch; it changes nothing. Since each of two relays with different maps
 * writes its lease first and looks for the other's then, at least one of them finds the other.
 */
export interface ShardMapStore {
  agree(request: { map: ShardMap; settleMs: number }): Promise<ShardMapOutcome>;
  check(request: { map: ShardMap }): Promise<ShardMapOutcome>;
}

export type CheckpointClaim =
  | { readonly kind: 'claimed'; readonly token: ResumeToken | null }
  /** A later epoch has claimed it. */
  | { readonly kind: 'fenced' };

/**
 * The resume token of a shard, fenced by (epoch, seq). `claim` stamps the epoch, resets seq to 0 and reads the token in
 * ONE conditional update (refused when a higher epoch is stamped there; claiming again with the same epoch is refused
 * too once a save with it has happened). `save` stores the token only while the stamped epoch equals `epoch` and the
 * stored seq is lower than `seq`; tokens are never compared.
 */
export interface CheckpointStore {
  claim(request: { shard: ShardId; epoch: Epoch }): Promise<CheckpointClaim>;
  save(request: { shard: ShardId; epoch: Epoch; seq: number; token: ResumeToken }): Promise<'saved' | 'fenced'>;
}

export interface CapturedRow {
  readonly row: OutboxRow;
  /** Resuming after this token continues behind this row. */
  readonly token: ResumeToken;
}

export interface CaptureBatch {
  /** Inserted outbox rows in commit order, as inserted; their status may have changed since. */
  readonly rows: readonly CapturedRow[];
  /** Resuming after this token continues behind everything in `rows`. Null while the server has given none. */
  readonly token: ResumeToken | null;
  /**
   * How far the end of this batch was behind the cluster's time when it was read, in ms: 0 when there was nothing more to read, null where
   * the server does not tell.
   */
  readonly lagMs: number | null;
  /** An outbox was dropped or renamed under the stream: sweep before anything else is trusted. */
  readonly disturbed: boolean;
}

/** One open change stream. `read` waits at most about a second for rows and resolves with an empty batch when none came. */
export interface CaptureStream {
  /** Rejects with NP_CAPTURE_LOST when the stream is over and cannot be resumed behind what it delivered; close it then. */
  read(): Promise<CaptureBatch>;
  close(): Promise<void>;
}

/**
 * Opens a stream over the inserts of every configured outbox, in slots `slots` only. With `after: null` it starts now:
 * everything that commits after `open` has resolved is delivered. Rejects with NP_CAPTURE_LOST when the token cannot be
 * resumed, whatever the server's reason (history lost, invalidated, unknown, of another collection).
 */
export interface Capture {
  open(request: { after: ResumeToken | null; slots: readonly Slot[] }): Promise<CaptureStream>;
}

export interface RowReference {
  readonly namespace: Namespace;
  readonly eventId: EventId;
}

/** Where a sweep stands inside a slot: the last row that it read, in the order (namespace, aggregate key parts, version). */
export type SweepCursor = Pick<
  OutboxRow,
  'namespace' | 'source' | 'aggregateType' | 'aggregateId' | 'aggregateVersion'
>;

/**
 * The truth about outbox rows, read with majority. Rows come in the order (namespace, aggregate, version). A PROCESSING row
 * is another relay's claim, and its `dueInMs` the time that the claim has left; a claim that is too old, and one of
 * this relay's own, is shown as PENDING.
 */
export interface OutboxReader {
  /** Unsettled rows of one slot behind `after`, at most `limit`, over all configured namespaces. */
  readUnsettled(request: { slot: Slot; after: SweepCursor | null; limit: number }): Promise<readonly OutboxRow[]>;
  /** All unsettled rows of these aggregates, at most `limitPerAggregate` of the lowest versions of each. */
  readLanes(
    lanes: readonly { namespace: Namespace; aggregate: AggregateKey }[],
    limitPerAggregate: number,
  ): Promise<readonly OutboxRow[]>;
  /** The rows themselves whatever their status; `missing` where outbox and archive have none, `archived` where it was published and moved. */
  lookUp(references: readonly RowReference[]): Promise<ReadonlyMap<EventId, OutboxRow | 'archived' | 'missing'>>;
}

interface MarkTarget extends RowReference {
  readonly relay: string;
  readonly epoch: Epoch;
}

export type Mark =
  /** Wins over every other state, whatever the revision; sets publishedAt by the database's clock once. */
  | (MarkTarget & {
      readonly kind: 'published';
      readonly messageId: string;
      readonly topic: string;
      readonly form: PublicationForm;
      /** Milliseconds between capture and this mark, so that capturedAt can be told on the database's clock. */
      readonly sinceCaptureMs: number;
    })
  /** Only while the row has `revision` and is unpublished. nextRetryAt = database clock + retryInMs; DEAD has none. */
  | (MarkTarget & {
      readonly kind: 'failed';
      readonly revision: number;
      readonly status: 'FAILED' | 'DEAD';
      readonly retryCount: number;
      readonly retryInMs: number;
      readonly error: string;
    })
  /** Records that a send of the original had no answer. Only while the row has `revision`. */
  | (MarkTarget & { readonly kind: 'unanswered'; readonly revision: number })
  /** Claims the row for `relay` (PROCESSING), dated by the database's clock. Only while the row has `revision`. */
  | (MarkTarget & { readonly kind: 'claimed'; readonly revision: number });

export type MarkOutcome =
  /** The row now is as the mark says (a repeated mark included). */
  | { readonly kind: 'done' }
  /** The row has changed since it was read; read it again. */
  | { readonly kind: 'refused'; readonly status: OutboxStatus }
  /** The row was deleted under us. */
  | { readonly kind: 'missing' };

/** What a relay needs of the outbox because some relays poll in place of following a stream. */
export interface Polling {
  /** Those of `slots` that have unsettled rows in any configured outbox, so that a poll reads no others. */
  busySlots(slots: readonly Slot[]): Promise<readonly Slot[]>;
  /**
   * Gives back what other relays have claimed in these slots: PENDING, revision raised. For the owner of the slots' lease, right after
   * it was taken over, when nobody else may act for them any more. Returns the number of rows.
   */
  takeBack(request: { slots: readonly Slot[]; relay: string }): Promise<number>;
}

/** Applies many marks in few requests. Outcomes stand in the order of the marks. */
export interface OutboxMarker {
  mark(marks: readonly Mark[]): Promise<readonly MarkOutcome[]>;
}

export interface Publication {
  /** The broker's id of the message. */
  readonly messageId: string;
}

export interface PublishRequest {
  readonly row: OutboxRow;
  readonly relay: string;
  readonly epoch: Epoch;
  /**
   * Trace context of this send: the message names it beside its body, in place of the event's own, which the body keeps. For traces
   * only; set by whoever stands between engine and publisher.
   */
  readonly traceparent?: string;
}

/** Why a send failed, and so what may be done about it: see design "Failures". */
export type PublishFailure = 'transient' | 'topic' | 'permanent';

/**
 * `answered` is false when the broker may have stored the message all the same (time-out, lost connection).
 */
export class PublishError extends NightporterError {
  readonly failure: PublishFailure;
  readonly answered: boolean;

  constructor(details: { failure: PublishFailure; answered: boolean; message: string }, options?: { cause?: unknown }) {
    super('NP_PUBLISH_FAILED', details.message, options);
    this.name = 'PublishError';
    this.failure = details.failure;
    this.answered = details.answered;
  }
}

/**
 * Sends one event and resolves once the broker has stored it. Rejects with a {@link PublishError}: `transient` (try again
 * later, same order), `topic` (nothing of this topic can be sent) or `permanent` (this event can never be sent).
 * Calls for different aggregates may overlap, also where they share a message group; the engine never overlaps two of one
 * aggregate, unless the earlier one had no answer for so long that it gave it up. A call that has rejected, or was given
 * up, may still reach the broker later.
 */
export interface Publisher {
  publish(request: PublishRequest): Promise<Publication>;
}

export interface RepairRecord {
  readonly shard: ShardId;
  readonly epoch: Epoch;
  readonly owner: string;
  /** Why the outbox had to be read: history lost, stream lost, rows that the stream did not bring … */
  readonly reason: string;
  /** Unsettled rows that the repairing sweep found. */
  readonly rows: number;
}

/** Keeps what was repaired where an operator can read it (`relay_repairs`). */
export interface RepairLog {
  record(repair: RepairRecord): Promise<void>;
}

/** What operators ask of every relay of this database (`relay_controls`), read with majority. */
export interface RelayControls {
  readPause(): Promise<Pause>;
}

export type UnsettledStatus = Exclude<OutboxStatus, 'PUBLISHED'>;

export interface UnsettledFigures {
  readonly rows: number;
  /** Age of the oldest by the database's clock; null where there is none. */
  readonly oldestAgeMs: number | null;
}

/** How far back the cluster's history reaches: a checkpoint that falls behind it is lost. */
export type HistoryFigures =
  { readonly kind: 'known'; readonly reachMs: number } | { readonly kind: 'unknown'; readonly reason: string };

export interface OutboxFigures {
  readonly unsettled: Readonly<Record<UnsettledStatus, UnsettledFigures>>;
  /** There are more unsettled rows than were counted: what is told is a lower bound. */
  readonly isCapped: boolean;
  readonly history: HistoryFigures;
}

/** Figures over all configured outboxes, for people and alarms; nothing is decided by them. One call costs a bounded read of each outbox. */
export interface OutboxStats {
  read(): Promise<OutboxFigures>;
}
