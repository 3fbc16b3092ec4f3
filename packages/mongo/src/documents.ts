import type { InboxOutcome, ParkedFailure, ParkedState } from '@nightporter/consumer';
import type { PublicationForm } from '@nightporter/contracts';
import type { AggregateKey, Epoch, EventId, Namespace } from '@nightporter/protocol';
import type { Binary, ObjectId } from 'mongodb';

/** `relay_leases`: `_id` is the shard. */
export interface LeaseDocument {
  readonly _id: string;
  readonly owner: string;
  readonly epoch: Epoch;
  /** Whether the last write to the lease raised the epoch. */
  readonly takenOver: boolean;
  readonly expiresAt: Date;
}

/** `relay_instances`: `_id` is the relay's owner; it lives until `expiresAt`. */
export interface InstanceDocument {
  readonly _id: string;
  /** Ids of the shards that it shares with others that have the same. */
  readonly shards: readonly string[];
  readonly expiresAt: Date;
}

/** `relay_shard_map`: the one document, `_id` is `shards`. */
export interface ShardMapDocument {
  readonly _id: string;
  /** Ids of the shards that all slots are divided into. */
  readonly shards: readonly string[];
  /** Raised by every change. */
  readonly revision: number;
  readonly agreedAt: Date;
}

/** `relay_checkpoints`: `_id` is the shard. */
export interface CheckpointDocument {
  readonly _id: string;
  readonly epoch: Epoch;
  readonly seq: number;
  /** Opaque text, see resume-token.ts. */
  readonly token: string | null;
  readonly updatedAt: Date;
}

/** `relay_repairs`. */
export interface RepairDocument {
  readonly _id: ObjectId;
  readonly shard: string;
  readonly epoch: Epoch;
  readonly owner: string;
  readonly reason: string;
  readonly rows: number;
  readonly at: Date;
}

/** `relay_doubted_indexes`: an outbox whose indexes were created under a load, and may lack rows. */
export interface DoubtedIndexesDocument {
  readonly _id: Namespace;
  /** Database clock; what was open then may have escaped the indexes. */
  readonly since: Date;
}

/** `relay_controls`: what is paused; `_id` is `all`, or `topic:` and the topic. */
export interface PauseDocument {
  readonly _id: string;
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
}

/** `operator_actions`, in the database that the action changed: written in its transaction. */
export interface OperatorActionDocument {
  readonly _id: ObjectId;
  readonly action:
    | 'pause'
    | 'resume'
    | 'retry-event'
    | 'skip-event'
    | 'retention'
    | 'forced-retention'
    | 'remove-group'
    | 'replay'
    | 'retry-notifications';
  /** What it was done to: a topic, `all`, an event's id, an outbox, a group, a notification's key, or how many of them. */
  readonly target: string;
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
  /** What was asked for, where the action's name does not say it all. */
  readonly details?: Readonly<Record<string, string | number | null>>;
  /** What came of an action that took a while; absent while it runs, and when it was cut off. */
  readonly outcome?: Readonly<Record<string, string | number | null>>;
}

/** `groups` in the producer's database: `_id` is the group. */
export interface GroupDocument {
  readonly _id: string;
  readonly topics: readonly string[];
  readonly from: 'beginning' | 'now';
  /** What was published before it counts as history: `bootstrapping` ends once the watermark has passed it. */
  readonly floor: Date;
  readonly state: 'bootstrapping' | 'live';
  /** Everything published before it is settled or parked in the group; retention may not pass it. */
  readonly watermark: Date;
  readonly registeredAt: Date;
  /** The member that walks the published rows, and until when nobody else does. Absent or null: nobody. */
  readonly sweeper?: { readonly owner: string; readonly until: Date } | null;
  /** Present while the group has its positions set: to the heads if it starts now, else to right before what the ledger still has. */
  readonly copyingHeads?: true;
  readonly copiedBatches?: number;
  /** The replay that made the group. While it prepares the group no worker may start, and retention waits. */
  readonly replay?: { readonly state: 'preparing' | 'ready'; readonly selection: string };
}

/** The document `registry` in `groups`: raised by every change of the groups and by every batch of retention, so that they conflict. */
export interface RegistryDocument {
  readonly _id: 'registry';
  readonly revision: number;
  /** By topic: retention has deleted rows, archive included, that were published up to then. A topic that it never deleted of is absent. */
  readonly deletedTo?: Readonly<Record<string, Date>>;
}

/** `group_starts`: `_id` is the group, its producer, and since when it starts there. Of groups whose producer is out of reach. */
export interface StartDocument {
  readonly _id: string;
  readonly group: string;
  /** Pages of positions that were set; every page raises it, so that the end and a late page conflict. */
  readonly pages: number;
  readonly finished: boolean;
}

/** `inbox`: see {@link placeId}. */
export interface InboxDocument {
  readonly _id: string;
  readonly group: string;
  readonly eventId: EventId;
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly outcome: InboxOutcome;
  /** Of the event as its producer wrote it. */
  readonly digest: string;
  /** Of what the handler was given: differs only after an operator's edit. */
  readonly appliedDigest: string;
  readonly attempts: number;
  readonly duplicates: number;
  readonly receivedAt: Date;
  readonly processedAt: Date;
  readonly expireAt: Date;
}

/** `positions`: see {@link positionId}. Never expires. */
export interface PositionDocument {
  readonly _id: string;
  readonly group: string;
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly startVersion: number;
  readonly state: 'open' | 'blocked';
  /** Versions up to `startVersion` were deleted before the group came, and somebody accepted that. */
  readonly startReason?: 'unavailable';
  /** Raised by every verdict, so that two verdicts on one aggregate conflict. */
  readonly revision: number;
}

/** A message as `parked` keeps it. */
export interface StoredEvent {
  readonly eventId: EventId;
  readonly eventType: string;
  /** JSON text, since BSON would not give every number and key back as it came. */
  readonly envelope: string;
  readonly topic: string;
  readonly form: PublicationForm;
  readonly digest: string;
  readonly messageId: string;
  /** Of its outbox row, where that came along. */
  readonly createdAt?: Date;
  /** Trace context of the send that brought it, for the spans of its retries. */
  readonly sentIn?: string;
}

/** `parked`, a message with its place in the sequence: see {@link placeId}. */
export interface ParkedDocument {
  readonly _id: string;
  readonly group: string;
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly sequenced: true;
  readonly state: ParkedState;
  readonly event: StoredEvent;
  readonly attempts: number;
  readonly nextRetryAt: Date | null;
  readonly firstFailedAt: Date | null;
  readonly lastFailedAt: Date | null;
  readonly failure: ParkedFailure | null;
  readonly parkedAt: Date;
  readonly revision: number;
  /** Claimed, and nothing was heard of it since. */
  readonly isRunning?: boolean;
  /** Names the claim. */
  readonly claimedAs?: string;
  /** Parked before it ran, since it may have ended a process. */
  readonly isSuspect?: boolean;
  /** The message as it came, once an operator has edited `event`. */
  readonly original?: StoredEvent;
  /** The last edit. */
  readonly edit?: OperatorNote;
}

/** `dead_letter_copies`: a dead letter of which a copy is yet to be sent. */
export interface CopyDocument {
  readonly _id: string;
  readonly group: string;
  readonly aggregate: AggregateKey;
  readonly event: StoredEvent;
  /** After an operator's edit: the digest of the event as its producer wrote it. */
  readonly writtenDigest: string | null;
  readonly attempts: number;
  readonly failure: ParkedFailure | null;
  readonly diedAt: Date;
  readonly nextTryAt: Date;
}

/** Who decided what an operator decides, why, and when by the database's clock. */
export interface OperatorNote {
  readonly by: string;
  readonly reason: string;
  readonly at: Date;
}

/** `parked`, a message without a place in any sequence: see {@link asideId}. */
export interface SetAsideDocument {
  readonly _id: string;
  readonly group: string;
  /** A copy that comes later makes a dismissed one `aside` again. */
  readonly state: 'aside' | 'dismissed';
  readonly topic: string;
  readonly messageId: string;
  readonly body: Binary;
  /** Pairs, since a name may hold what a field name may not. */
  readonly properties: readonly { readonly name: string; readonly value: string }[];
  readonly failure: ParkedFailure;
  /** How often it came. */
  readonly count: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  /** The last dismissal. */
  readonly dismissal?: OperatorNote;
}

/** `operator_actions` in the consumer's database, about what a group has parked: written in the transaction of the action. */
export interface GroupActionDocument extends OperatorNote {
  readonly _id: ObjectId;
  readonly action: 'retry' | 'edit-and-retry' | 'skip' | 'dismiss';
  readonly group: string;
  /** `_id` of the parked message. */
  readonly target: string;
  readonly eventId: EventId | null;
  readonly eventType: string | null;
  readonly aggregate: AggregateKey | null;
  readonly version: number | null;
  /** What was decided upon. */
  readonly before: { readonly attempts: number; readonly revision: number; readonly failure: ParkedFailure | null };
  /** Digests before and after an edit. */
  readonly edit: { readonly digest: string; readonly appliedDigest: string } | null;
  /** Names all actions of one bulk request. */
  readonly bulk: string | null;
}

/** `started`: see {@link startedId}. */
export interface StartedDocument {
  readonly _id: string;
  readonly group: string;
  readonly owner: string;
  readonly loop: number;
  readonly events: readonly EventId[];
  readonly at: Date;
}

/*
 * Ids of the consumer's documents. They are made of what is asked for, so that a batch is loaded by exact ids. Neither `|` nor `#` nor
 * `:` can stand in an aggregate key, so no two documents share an id whatever a group is called.
 */

export function positionId(group: string, aggregate: AggregateKey): string {
  return `${group}|${aggregate}`;
}

/** Id of what a group has at one version of one aggregate: in `inbox` once it is settled, in `parked` while it waits. */
export function placeId(group: string, aggregate: AggregateKey, version: number): string {
  return `${group}|${aggregate}#${version}`;
}

export function asideId(group: string, id: string): string {
  return `${group}|aside:${id}`;
}

/** Id of what one receive loop of one process start has in hand. */
export function startedId(group: string, owner: string, loop: number): string {
  return `${group}|${owner}#${loop}`;
}
