import type { Epoch, Pause } from '@nightporter/protocol';
import type { OutboxFigures, ShardId } from './ports.js';

/**
 * `elsewhere`: not asked for, since this instance has its share of the shards. `standby`: another owner has the lease, or it is being asked for. `starting`: claims the checkpoint and opens the stream.
 * `sweeping`: reads the outbox before the stream is followed and any token is saved. `following`: the normal state.
 * `polling`: the normal state of a relay that polls. `suspended`: holds a lease that it could not renew in time, and sends nothing. `draining`: stops. `stopped`: has stopped.
 */
export type ShardState =
  'elsewhere' | 'standby' | 'starting' | 'sweeping' | 'following' | 'polling' | 'suspended' | 'draining' | 'stopped';

/** Counted since the process started, over all sessions of the shard. */
export interface RelayCounts {
  /** Rows that the stream delivered. */
  readonly captured: number;
  /** Rows that this relay claimed, when it polls. */
  readonly claimed: number;
  /** Sends that the broker answered. */
  readonly published: number;
  /** Sends begun, repeated ones included. */
  readonly attempts: number;
  /** Sends that failed, whatever the reason. */
  readonly sendFailures: number;
  /** Marks written: PUBLISHED, FAILED and DEAD. */
  readonly markedPublished: number;
  readonly markedFailed: number;
  readonly markedDead: number;
  /** Marks refused because the row had changed, and marks that found no row. */
  readonly refused: number;
  readonly missing: number;
  readonly sweeps: number;
  readonly repairs: number;
  /** Times that a lease was taken over: the session began in a new epoch. */
  readonly takeOvers: number;
  /** Claims and saves of a checkpoint that a later epoch had fenced off. */
  readonly fenced: number;
  readonly checkpointsSaved: number;
  readonly databaseFailures: number;
}

export interface ShardSnapshot {
  readonly shard: ShardId;
  readonly state: ShardState;
  readonly epoch: Epoch | null;
  readonly windowMax: number;
  readonly sendsInFlight: number;
  /** Rows in memory: waiting, in flight or not yet marked. */
  readonly rowsInMemory: number;
  readonly lanesHeld: number;
  /** Topics that cannot be sent to. */
  readonly topicsClosed: readonly string[];
  /** What operators have paused, as last read. */
  readonly paused: Pause;
  /** Delivered rows that the checkpoint waits for. */
  readonly tracked: number;
  /** Sequence number of the last saved checkpoint in this epoch; 0 while there is none. */
  readonly checkpointSeq: number;
  /** Requests for the lease that had no answer, since one had. */
  readonly leaseFailuresInARow: number;
  /** Milliseconds since the last answer to a request for the lease; null before the first. */
  readonly sinceLeaseAnswerMs: number | null;
  /** Why another division of the slots keeps this relay from asking for the lease; null while none does. */
  readonly otherMap: string | null;
  /** Milliseconds since this session last got ahead: read, marked or saved something. Null while it holds no lease. */
  readonly sinceAheadMs: number | null;
  /** How long rows have been in memory with none of them marked; null while there are none. */
  readonly unmarkedForMs: number | null;
  /** How long something that was read from the stream has waited for a checkpoint that moves; null when all of it is covered. */
  readonly uncoveredForMs: number | null;
  /** How far the stream's reading is behind the cluster's time, at most; null while unknown, and when polling. */
  readonly lagMs: number | null;
  /** Events a second that the broker took, over the last ten seconds. */
  readonly publishesPerSecond: number;
  /** Repairs since the process started, by reason. */
  readonly repairsByReason: Readonly<Record<string, number>>;
  /** Milliseconds since the stream last answered, brought a row, and since a mark and a checkpoint were last written, in this session. */
  readonly sinceReadMs: number | null;
  readonly sinceCaptureMs: number | null;
  readonly sinceMarkMs: number | null;
  readonly sinceCheckpointMs: number | null;
  readonly counts: RelayCounts;
}

/** Figures of the outboxes, and how old they are. */
export type OutboxSnapshot = OutboxFigures & { readonly ageMs: number };

export interface SharingSnapshot {
  /** Living instances, itself included, as last told; null before the first answer. */
  readonly instances: number | null;
  /** Shards that this one should have; null while it does not know, and then it keeps what it has and asks for no more. */
  readonly share: number | null;
  /** Shards that it has. */
  readonly held: number;
  readonly announceFailuresInARow: number;
}

export interface RelaySnapshot {
  readonly owner: string;
  /** Null where shards are not shared out: there is one, or this relay takes whatever is free. */
  readonly sharing: SharingSnapshot | null;
  /** Null where nobody reads them: on a standby, before the first reading, and without the port. */
  readonly outbox: OutboxSnapshot | null;
  readonly shards: readonly ShardSnapshot[];
}
