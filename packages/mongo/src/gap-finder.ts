import type { Gap, GapFinder } from '@nightporter/consumer';
import { aggregateVersion, type AggregateKey } from '@nightporter/protocol';
import type { DatabaseClock } from './database-clock.js';
import { positionId } from './documents.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';
import { WAITS_FOR_OTHERS, WaitingAggregates, type Waiting, type WaitingPage } from './waiting-aggregates.js';

export interface GapFinderOptions {
  readonly group: string;
  readonly collections: GroupCollections;
  readonly clock: DatabaseClock;
}

export function createGapFinder(options: GapFinderOptions): GapFinder {
  const { collections, group } = options;
  const place = `${collections.parked.namespace} of group ${group}`;
  const aggregates = new WaitingAggregates(options);
  return { find: (request) => guarded(`finding gaps in ${place}`, () => find(options, aggregates, request)) };
}

/** It costs what is waiting, and nothing where nothing is. */
async function find(
  { clock, collections, group }: GapFinderOptions,
  aggregates: WaitingAggregates,
  { after, limit, olderThanMs }: Parameters<GapFinder['find']>[0],
): ReturnType<GapFinder['find']> {
  const parkedBefore = new Date((await clock.read()).getTime() - olderThanMs);
  const pages = await Promise.all(
    WAITS_FOR_OTHERS.map((state) => aggregates.page({ state, after, limit, parkedBefore })),
  );
  const { waiting, after: goOnAfter } = merge(pages, limit);
  if (waiting.length === 0) return { gaps: [], after: goOnAfter };
  const ids = waiting.map(({ aggregate }) => positionId(group, aggregate));
  const found = await collections.positions.find({ _id: { $in: ids } }).toArray();
  const positions = new Map(found.map((position) => [position.aggregate, position]));
  const gaps = waiting.flatMap(({ aggregate, lowest }): Gap[] => {
    const { state = 'open', version = 0 } = positions.get(aggregate) ?? {};
    if (state === 'blocked' || lowest <= version + 1) return [];
    return [{ aggregate, from: aggregateVersion(version + 1), to: aggregateVersion(lowest - 1) }];
  });
  return { gaps, after: goOnAfter };
}

/** As far as all pages go: behind the end of one, an aggregate may have a lower version that was not looked at. */
function merge(pages: readonly WaitingPage[], limit: number): WaitingPage {
  const ends = pages.flatMap(({ after }) => (after === null ? [] : [after]));
  const end = ends.reduce<AggregateKey | null>((least, one) => (least === null || one < least ? one : least), null);
  const lowest = new Map<AggregateKey, Waiting>();
  for (const one of pages.flatMap(({ waiting }) => waiting)) {
    if (end !== null && one.aggregate > end) continue;
    const other = lowest.get(one.aggregate);
    if (other === undefined || one.lowest < other.lowest) lowest.set(one.aggregate, one);
  }
  // Keys are ASCII, so that they compare here as in the database.
  const inOrder = [...lowest.values()].sort((left, right) => (left.aggregate < right.aggregate ? -1 : 1));
  const waiting = inOrder.slice(0, limit);
  return { waiting, after: inOrder.length > limit ? (waiting.at(-1)?.aggregate ?? null) : end };
}
