/**
 * What the group's ledger sweep needs of the world. The broker's message is the group's doorbell; the producer's outbox, with its
 * archive, is the truth that the group compares itself with. As in ports.ts, each comment is the port's contract, and a call that
 * could not be carried out rejects with NP_STORE_UNAVAILABLE. Moments are milliseconds since 1970 on the producer's database clock.
 */
import type { AggregateKey, AggregateVersion, EventId } from '@nightporter/protocol';
import type { IncomingEvent } from './ports.js';

export interface AggregatePlace {
  readonly aggregate: AggregateKey;
  readonly version: AggregateVersion;
}

/** A place that is asked about. Which event was seen there, where that is known, may only help to find it fast. */
export interface LedgerPlace extends AggregatePlace {
  readonly eventId?: EventId;
}

/** A published row, without what it holds. */
export interface PublishedReference extends AggregatePlace {
  readonly eventId: EventId;
}

export interface PublishedPage {
  /** In the order of their publication. */
  readonly rows: readonly PublishedReference[];
  /** Whatever was published after `after` and up to here is in `rows`. */
  readonly toMs: number;
  /** True when nothing older than the lag lies behind `toMs`. */
  readonly isEnd: boolean;
}

/**
 * What the producer's ledger has at one version. `published`: in the form that was published. `not-committed`: the aggregate has not
 * come so far. `unpublished`: the relay will send it. `dead`: the relay could not, and an operator has to decide. `deleted`: it was
 * committed, and is neither in the outbox nor in the archive.
 */
export type LedgerAnswer =
  | { readonly kind: 'published'; readonly event: IncomingEvent; readonly publishedAtMs: number }
  | { readonly kind: 'not-committed' | 'unpublished' | 'dead' | 'deleted' };

/** Why a version cannot be had. */
export type Unavailable = Exclude<LedgerAnswer['kind'], 'published'>;

/**
 * One producer's outbox and archive, read only. `readPublished` looks at about `limit` rows published after `afterMs` and at least
 * `lagMs` ago, and returns those of `topics`: the lag keeps it behind marks that are not visible yet. A page never ends between two
 * rows of one moment. `withArchive` reads archived rows too, which only a group needs that came after they were archived. `readVersions`
 * answers for each place, in their order. `countPublished`, where an adapter offers it, says about how many rows were published after a moment,
 * archive included and whatever their topics, for people who wait; it may reject where counting takes too long.
 */
export interface ProducerLedger {
  readPublished(request: {
    topics: readonly string[];
    afterMs: number;
    lagMs: number;
    limit: number;
    withArchive: boolean;
  }): Promise<PublishedPage>;
  readVersions(places: readonly LedgerPlace[]): Promise<readonly LedgerAnswer[]>;
  countPublished?(afterMs: number): Promise<number>;
}

export type SweepClaim =
  | {
      readonly kind: 'claimed';
      readonly topics: readonly string[];
      /** Whatever was published up to here is settled or parked in the group. */
      readonly watermarkMs: number;
      /** Raised whenever the watermark goes back, as it does where a topic is added. */
      readonly floorMs: number;
      readonly state: 'bootstrapping' | 'live';
    }
  /** Another member sweeps. */
  | { readonly kind: 'held' }
  /** The group is not registered with this producer. */
  | { readonly kind: 'unregistered' };

/**
 * The group's entry with one producer. `claim` takes or renews, for `durationMs` on the database's clock, the right to walk, so that the members
 * of a group do not all do the same work; two that walk at once do no harm. `advance` moves the watermark up, never down, and makes
 * the group `live` once it has passed the floor; whoever calls it has made sure that everything up to there is settled or parked, of the topics that
 * his claim named: where the floor is another than the claim's, nothing moves.
 * `release` gives the claim up. `standing` only looks.
 * `group`, where an adapter tells it, is compared at the start.
 */
export interface GroupRegistry {
  readonly group?: string;
  standing(): Promise<GroupStanding | null>;
  claim(request: { owner: string; durationMs: number }): Promise<SweepClaim>;
  advance(request: { toMs: number; floorMs: number }): Promise<void>;
  release(owner: string): Promise<void>;
}

/** How far a group is with one producer. */
export interface GroupStanding {
  readonly state: 'bootstrapping' | 'live';
  readonly watermarkMs: number;
  /** Those that are swept, where an adapter tells them. */
  readonly topics?: readonly string[] | undefined;
}

/** Versions that keep parked ones waiting: from right behind the position up to right before the lowest parked one. */
export interface Gap {
  readonly aggregate: AggregateKey;
  readonly from: AggregateVersion;
  readonly to: AggregateVersion;
}

/**
 * Finds, in the group's own database, aggregates whose lowest parked version is not the next in line, has waited for `olderThanMs`, and does not
 * wait behind a parked one. Looks at no more than `limit` aggregates, those behind `after` in the order of their keys; `after` in the
 * answer says where to go on, null at the end, whether this page found something or not.
 */
export interface GapFinder {
  find(request: {
    olderThanMs: number;
    after: AggregateKey | null;
    limit: number;
  }): Promise<{ readonly gaps: readonly Gap[]; readonly after: AggregateKey | null }>;
}

/** One producer whose topics the group reads. */
export interface GroupProducer {
  readonly ledger: ProducerLedger;
  readonly registry: GroupRegistry;
}
