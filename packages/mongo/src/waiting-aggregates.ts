import { aggregateVersion, type AggregateKey, type AggregateVersion } from '@nightporter/protocol';
import type { Document, Filter } from 'mongodb';
import type { ParkedDocument } from './documents.js';
import type { GroupCollections } from './group-collections.js';

/** States of messages that wait for a version before them. */
export const WAITS_FOR_OTHERS = ['gap', 'behind'] as const;

export type WaitsForOthers = (typeof WAITS_FOR_OTHERS)[number];

export interface WaitingRequest {
  readonly state: WaitsForOthers;
  /** Where the page before ended; null at the beginning. */
  readonly after: AggregateKey | null;
  /** Aggregates that are looked at, at most. */
  readonly limit: number;
  /** Messages that were parked later do not count. */
  readonly parkedBefore: Date;
}

export interface WaitingPage {
  /** In the order of their keys, each with its lowest version that was parked in time. */
  readonly waiting: readonly Waiting[];
  /** Up to here everything was looked at, found or not; null: to the end. */
  readonly after: AggregateKey | null;
}

export interface Waiting {
  readonly aggregate: AggregateKey;
  readonly lowest: AggregateVersion;
}

/** Keys that one page reads at most, however many messages of an aggregate wait. */
const PAGE_KEYS_MAX = 5_000;

/** Before all others. */
const NO_KEY = '' as AggregateKey;

interface Looked {
  readonly _id: AggregateKey;
  readonly keys: number;
  /** Null where nothing was parked in time. */
  readonly lowest: number | null;
}

/**
 * Walks aggregates of which messages wait, page by page on the index `waiting`, whose fields are all that is read. A page takes in a limited stretch of
 * the index and is grouped by the database, so that a walk reads each key once at most and brings one row for each aggregate; the limit comes before
 * anything else is asked of a row, or a page could read on to the end. What is left of the aggregate that it ends in is skipped.
 */
export class WaitingAggregates {
  readonly #group: string;
  readonly #parked: GroupCollections['parked'];
  /** What the last page met, so that the next reads about as much as it can use. */
  readonly #keysPerAggregate = { gap: 1, behind: 1 };

  constructor({ collections, group }: { collections: GroupCollections; group: string }) {
    this.#group = group;
    this.#parked = collections.parked;
  }

  async page({ after, limit, parkedBefore, state }: WaitingRequest): Promise<WaitingPage> {
    const keysMax = Math.min(PAGE_KEYS_MAX, Math.ceil(limit * this.#keysPerAggregate[state]));
    // A lower bound always, since SecantusDB takes this index, and not any other of the same prefix, only for a range.
    const behind: Filter<ParkedDocument> = { group: this.#group, state, aggregate: { $gt: after ?? NO_KEY } };
    const parkedInTime: Document = { $cond: [{ $lte: ['$parkedAt', parkedBefore] }, '$version', null] };
    const looked = await this.#parked
      .aggregate<Looked>([
        { $match: behind },
        { $sort: { aggregate: 1, version: 1 } },
        { $limit: keysMax },
        { $group: { _id: '$aggregate', keys: { $sum: 1 }, lowest: { $min: parkedInTime } } },
        { $sort: { _id: 1 } },
        { $limit: limit },
      ])
      .toArray();
    const keys = looked.reduce((sum, one) => sum + one.keys, 0);
    if (looked.length > 0) this.#keysPerAggregate[state] = keys / looked.length;
    const isEnd = looked.length < limit && keys < keysMax;
    return {
      waiting: looked.flatMap(({ _id: aggregate, lowest }) =>
        lowest === null ? [] : [{ aggregate, lowest: aggregateVersion(lowest) }],
      ),
      after: isEnd ? null : (looked.at(-1)?._id ?? null),
    };
  }
}
