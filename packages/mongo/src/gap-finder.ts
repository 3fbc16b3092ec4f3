import type { Gap, GapFinder } from '@nightporter/consumer';
import { aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { Filter } from 'mongodb';
import type { DatabaseClock } from './database-clock.js';
import { positionId, type ParkedDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';

export interface GapFinderOptions {
  readonly group: string;
  readonly collections: GroupCollections;
  readonly clock: DatabaseClock;
}

export function createGapFinder(options: GapFinderOptions): GapFinder {
  const { collections, group } = options;
  const place = `${collections.parked.namespace} of group ${group}`;
  return { find: (request) => guarded(`finding gaps in ${place}`, () => find(options, request)) };
}

interface Waiting {
  readonly _id: AggregateKey;
  readonly lowest: number;
}

/** On the index of what is due and what may have been forgotten: it costs what is waiting, and nothing where nothing is. */
async function find(
  { clock, collections, group }: GapFinderOptions,
  { after, limit, olderThanMs }: Parameters<GapFinder['find']>[0],
): ReturnType<GapFinder['find']> {
  const parkedBefore = new Date((await clock.read()).getTime() - olderThanMs);
  const waits: Filter<ParkedDocument> = {
    group,
    state: { $in: ['gap', 'behind'] },
    parkedAt: { $lte: parkedBefore },
  };
  const waiting = await collections.parked
    .aggregate<Waiting>([
      { $match: after === null ? waits : { ...waits, aggregate: { $gt: after } } },
      { $group: { _id: '$aggregate', lowest: { $min: '$version' } } },
      { $sort: { _id: 1 } },
      { $limit: limit },
    ])
    .toArray();
  if (waiting.length === 0) return { gaps: [], after: null };
  const ids = waiting.map(({ _id }) => positionId(group, _id));
  const found = await collections.positions.find({ _id: { $in: ids } }).toArray();
  const positions = new Map(found.map((position) => [position.aggregate, position]));
  const gaps = waiting.flatMap(({ _id: aggregate, lowest }): Gap[] => {
    const { state = 'open', version = 0 } = positions.get(aggregate) ?? {};
    if (state === 'blocked' || lowest <= version + 1) return [];
    return [{ aggregate, from: aggregateVersion(version + 1), to: aggregateVersion(lowest - 1) }];
  });
  return { gaps, after: waiting.length < limit ? null : (waiting.at(-1)?._id ?? null) };
}
