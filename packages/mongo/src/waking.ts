import type { ParkedQueue } from '@nightporter/consumer';
import { isNightporterError, type AggregateKey } from '@nightporter/protocol';
import type { Filter, MongoClient } from 'mongodb';
import type { DatabaseClock } from './database-clock.js';
import { placeId, positionId, type ParkedDocument } from './documents.js';
import type { GroupCollections } from './group-collections.js';
import { MADE_DUE } from './group-save.js';
import { runTransaction } from './transactions.js';
import {
  WAITS_FOR_OTHERS,
  type WaitingAggregates,
  type WaitingPage,
  type WaitingRequest,
} from './waiting-aggregates.js';

export interface WakingOptions {
  readonly client: MongoClient;
  readonly group: string;
  readonly collections: GroupCollections;
  readonly clock: DatabaseClock;
}

/** Aggregates that are looked at in one request. */
const LOOK_MAX = 500;

interface Wakeable {
  readonly aggregate: AggregateKey;
  readonly version: number;
}

/** A scan looks at the lowest version of each aggregate that waits; what lies behind that has no turn yet. */
export async function wake(
  options: WakingOptions,
  aggregates: WaitingAggregates,
  { olderThanMs, limit }: Parameters<ParkedQueue['wake']>[0],
): Promise<number> {
  const parkedBefore = new Date((await options.clock.read()).getTime() - olderThanMs);
  let woken = 0;
  for (const state of WAITS_FOR_OTHERS) {
    let after: AggregateKey | null = null;
    do {
      const page: WaitingPage = await aggregates.page({ state, after, limit: LOOK_MAX, parkedBefore });
      after = page.after;
      for (const next of await nextInLine(options, {
        state,
        parkedBefore,
        waiting: page.waiting,
        limit: limit - woken,
      })) {
        if (woken === limit) return woken;
        if (await wakeOne(options, next)) woken += 1;
      }
    } while (after !== null && woken < limit);
  }
  return woken;
}

async function nextInLine(
  { group, collections: { parked, positions } }: WakingOptions,
  { limit, parkedBefore, state, waiting }: Omit<WaitingRequest, 'after'> & Pick<WaitingPage, 'waiting'>,
): Promise<readonly Wakeable[]> {
  if (waiting.length === 0) return [];
  const ids = waiting.map(({ aggregate }) => positionId(group, aggregate));
  const standing = await positions.find({ _id: { $in: ids } }).toArray();
  const versions = new Map(standing.map((position) => [position.aggregate, position.version]));
  const next: Wakeable[] = [];
  for (const { aggregate, lowest } of waiting) {
    const upTo = (versions.get(aggregate) ?? 0) + 1;
    if (lowest === upTo) next.push({ aggregate, version: lowest });
    if (lowest >= upTo) continue;
    // Settled versions that are still parked: there may be several, and the next in line behind them.
    // `$lt`, since SecantusDB overlooks what is equal to an upper bound where the index goes on behind the field.
    const place: Filter<ParkedDocument> = { group, state, aggregate, version: { $gte: lowest, $lt: upTo + 1 } };
    const projection = { aggregate: 1, version: 1, parkedAt: 1 };
    const found = parked.find<Wakeable & { parkedAt: Date }>(place, { projection });
    const rows = await found.sort({ version: 1 }).limit(limit).toArray();
    next.push(...rows.filter(({ parkedAt }) => parkedAt <= parkedBefore));
  }
  return next;
}

/** Decides anew in a transaction; false when the message is no longer waiting there, or a concurrent verdict won. */
async function wakeOne({ client, group, collections }: WakingOptions, next: Wakeable): Promise<boolean> {
  const { positions, parked } = collections;
  const _id = positionId(group, next.aggregate);
  const parkedId = placeId(group, next.aggregate, next.version);
  const operation = `waking ${parkedId}`;
  try {
    return await runTransaction(client, operation, ({ session, own }) =>
      own(operation, async () => {
        const position = await positions.findOne({ _id }, { session });
        const { version, startVersion, state } = position ?? { version: 0, startVersion: 0, state: 'open' as const };
        if (next.version > version + 1) return false;
        const waiting: Filter<ParkedDocument> = { _id: parkedId, state: { $in: ['gap', 'behind'] } };
        const { modifiedCount } = await parked.updateOne(waiting, [{ $set: MADE_DUE }], { session });
        if (modifiedCount === 0) return false;
        // A position is blocked exactly while the version right behind it is parked; an older one holds nothing up.
        const blocked = next.version === version + 1 ? 'blocked' : state;
        await positions.updateOne(
          { _id },
          { $set: { group, aggregate: next.aggregate, version, startVersion, state: blocked }, $inc: { revision: 1 } },
          { session, upsert: true },
        );
        return true;
      }),
    );
  } catch (error) {
    if (isNightporterError(error, 'NP_TRANSACTION_CONFLICT')) return false;
    throw error;
  }
}
