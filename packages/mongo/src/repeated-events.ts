import type { EventPlace, RepeatedEvents } from '@nightporter/consumer';
import { placeId, positionId } from './documents.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';

/** Looks at inbox and positions by exact ids, outside of any transaction: what is settled there stays settled. */
export function createRepeatedEvents(collections: GroupCollections, group: string): RepeatedEvents {
  return {
    count: (events) =>
      guarded(`counting repeats in ${collections.inbox.namespace} of group ${group}`, () =>
        count(collections, group, events),
      ),
  };
}

async function count(
  { inbox, positions }: GroupCollections,
  group: string,
  events: readonly EventPlace[],
): ReturnType<RepeatedEvents['count']> {
  const places = events.map((event) => placeId(group, event.aggregate, event.envelope.aggregateVersion));
  const aggregates = [...new Set(events.map(({ aggregate }) => positionId(group, aggregate)))];
  const settled = await inbox.find({ _id: { $in: [...new Set(places)] } }, { projection: { eventId: 1 } }).toArray();
  const reached = await positions.find({ _id: { $in: aggregates } }).toArray();
  const eventAt = new Map(settled.map(({ _id, eventId }) => [_id, eventId]));
  const versionOf = new Map(reached.map(({ aggregate, version }) => [aggregate, version]));
  const repeats = events.filter(({ aggregate, envelope }, index) => {
    const isSame = eventAt.get(places[index] ?? '') === envelope.eventId;
    // A position that was lost is mended by the ordinary way only.
    return isSame && (versionOf.get(aggregate) ?? 0) >= envelope.aggregateVersion;
  });
  const counts = repeats.map((event) => ({
    updateOne: {
      filter: { _id: placeId(group, event.aggregate, event.envelope.aggregateVersion) },
      update: { $inc: { duplicates: 1 } },
    },
  }));
  if (counts.length > 0) await inbox.bulkWrite(counts, { ordered: false });
  return new Set(repeats.map(({ envelope }) => envelope.eventId));
}
