/**
 * Replays published events into one consumer group.
 *
 * A replay runs nothing: it parks what it selects in the group, each event decided by the sequencer, and the group's workers run parked events
 * as they always do. No other group is read or written. What it writes stands in the group's own database, and in the entry that a new
 * group gets in its producers' `groups`.
 */
import type { createProducerLedger } from '@nightporter/mongo';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import type { Decision } from '../requests.js';

export type ProducerLedger = ReturnType<typeof createProducerLedger>;

export interface ReplayProducer {
  readonly database: string;
  /** Those that the group reads of this producer. */
  readonly topics: readonly string[];
  /** By default its outbox and its archive collections. */
  readonly ledger?: ProducerLedger;
}

export interface ReplayOptions {
  readonly client: MongoClient;
  /** The group's own database. */
  readonly database: string;
  /** A group, or a generation of one: `name@2`. */
  readonly group: string;
  /** All producers that the group reads. */
  readonly producers: readonly ReplayProducer[];
  /** As the group's workers have it; default as theirs. */
  readonly inboxRetentionMs?: number;
  /** How old the registration of a new group must be before the ledger is read: a mark may become visible late. Default 10 s. */
  readonly lagMs?: number;
  /** More selected events are refused, since their places are held in memory. Default 100,000. */
  readonly eventsMax?: number;
}

/** All that is given must hold; at least one must be given. Moments are those of publication, by the producer's database. */
export interface Selection {
  readonly aggregates?: readonly AggregateKey[];
  readonly eventTypes?: readonly string[];
  readonly publishedFrom?: Date;
  /** Exclusive. */
  readonly publishedBefore?: Date;
}

/**
 * `new-group`: the group must not be registered yet. It is made such that the selected events are all that it gets of the past; of their
 * aggregates, what lies behind the first selected version and is not selected is settled as `skipped`. `what-is-missing`: the
 * group must be registered; what it has settled or parked stays as it is.
 */
export type Into = 'new-group' | 'what-is-missing';

export interface Selected {
  readonly eventId: EventId;
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly publishedAt: Date;
}

export interface ReplayPlan {
  readonly events: number;
  readonly aggregates: number;
  /** By publication; null where nothing is selected. */
  readonly first: Selected | null;
  readonly last: Selected | null;
  /** Of the selected events, those that the group has neither settled nor parked. */
  readonly missing: number;
}

export interface ReplayRequest extends Selection, Decision {
  readonly into: Into;
  /** Events per second that become due, kept between aggregates: one aggregate's events follow each other at once. Default: all at once. */
  readonly ratePerSecond?: number;
}

export interface ReplayResult {
  readonly events: number;
  readonly aggregates: number;
  /** Parked, to be run by the group's workers. */
  readonly parked: number;
  /** Parked without their data, so that they are settled as `skipped` in their turn: not selected, but among selected ones. */
  readonly skipped: number;
  /** Settled or parked before. */
  readonly known: number;
  /** Another event has the place; nothing was written. The group's sweep sets such events aside. */
  readonly conflicts: number;
}

export interface Replay {
  /** Writes nothing. Rejects as `run` does. */
  plan(request: Selection & { readonly into: Into }): Promise<ReplayPlan>;
  /**
   * Leaves an `operator_actions` record in the group's database. Interrupted, the same request may be made again, and completes it; until
   * then a new group's workers are refused (NP_REPLAY_UNFINISHED). Rejects with NP_ACTION_INVALID, also where the ledger has
   * lost a version among selected ones, NP_ARCHIVE_FAILED or NP_STORE_UNAVAILABLE.
   */
  run(request: ReplayRequest): Promise<ReplayResult>;
}
