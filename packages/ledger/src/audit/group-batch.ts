import { digestOf, envelopeOf } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  durableDatabase,
  placeId,
  positionId,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import { aggregateKey, type AggregateKey, type EventId } from '@nightporter/protocol';
import type { Collection } from 'mongodb';
import type { GroupPlace } from '../questions/deployment.js';
import { positionNote, parkedNote } from '../questions/group-facts.js';
import type { GroupFacts } from '../questions/explain.js';
import type { RowFacts } from './judge.js';
import { Rising, byIds, heightsOf, lookUp } from './lookups.js';
import { compareStrings } from './ordered.js';
import type { PublishedRow } from './rows.js';

type InboxPart = Pick<InboxDocument, '_id' | 'eventId' | 'outcome' | 'digest' | 'appliedDigest'>;
const INBOX_PART = { eventId: 1, outcome: 1, digest: 1, appliedDigest: 1 } as const;

export type Positions = Rising<GroupFacts['position']>;

/** Positions of a group, by aggregate. */
export function risingPositions(home: GroupPlace): Positions {
  const { client, database, group } = home;
  const documents = durableDatabase(client, database).collection<PositionDocument>(CONSUMER_COLLECTIONS.positions);
  return new Rising({
    heightOf: ({ version }) => version,
    load: async (aggregates) => {
      const found = await positionsOf(documents, group, aggregates as readonly AggregateKey[]);
      return new Map([...found].map(([aggregate, position]) => [aggregate, positionNote(position)]));
    },
  });
}

/**
 * What a group has of a batch of rows. Rows are read before, then positions, and the inbox last, so that what is settled meanwhile is found.
 * Only for what the inbox has no record of is anything else looked up.
 */
export async function readGroupBatch(
  { home, positions, watermarkMs }: { home: GroupPlace; positions: Positions; watermarkMs: number | null },
  rows: readonly PublishedRow[],
): Promise<readonly RowFacts[]> {
  const { group } = home;
  const database = durableDatabase(home.client, home.database);
  const inbox = database.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  const parked = database.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
  const places = rows.map((row) => {
    const aggregate = aggregateKey(row);
    return { row, aggregate, id: placeId(group, aggregate, row.aggregateVersion) };
  });
  const standing = await positions.read(
    heightsOf(places.map(({ aggregate, row }) => [aggregate, row.aggregateVersion])),
  );
  const nextOf = (aggregate: AggregateKey): string =>
    placeId(group, aggregate, (standing.get(aggregate)?.version ?? 0) + 1);
  const records = await recordsOf(
    inbox,
    group,
    rows.map((row) => row._id),
  );
  const others = places.filter(({ row }) => !records.has(row._id));
  const parkedIds = others.flatMap(({ aggregate, id }) => [id, nextOf(aggregate)]);
  const waiting = await byIds<ParkedDocument>(parked, parkedIds);
  const occupied = await byIds<InboxPart>(
    inbox as unknown as Collection<InboxPart>,
    others.map(({ id }) => id),
    INBOX_PART,
  );
  return places.map(({ aggregate, id, row }): RowFacts => {
    const settled = records.get(row._id) ?? null;
    const parkedHere = waiting.get(id);
    const parkedNext = waiting.get(nextOf(aggregate));
    const form = row.publication?.form ?? (row.skip === null ? 'original' : 'tombstone');
    return {
      eventId: row._id,
      version: row.aggregateVersion,
      publishedAtMs: row.publishedAt.getTime(),
      position: standing.get(aggregate) ?? positionNote(null),
      settledAs:
        settled === null ? null : { outcome: settled.outcome, isEdited: settled.appliedDigest !== settled.digest },
      settledHere: settled?.eventId ?? occupied.get(id)?.eventId ?? null,
      parkedHere: parkedHere === undefined ? null : parkedNote(parkedHere),
      parkedNext: parkedNext === undefined ? null : parkedNote(parkedNext),
      watermarkMs,
      digest: form === 'original' ? row.digest : digestOf(envelopeOf(row, form)),
      originalDigest: row.digest,
      form,
      unanswered: row.unanswered,
      settledDigest: settled?.digest ?? null,
    };
  });
}

/** Positions by aggregate. */
export async function positionsOf(
  positions: Collection<PositionDocument>,
  group: string,
  aggregates: readonly AggregateKey[],
): Promise<ReadonlyMap<AggregateKey, PositionDocument>> {
  const found = await byIds(
    positions,
    aggregates.map((aggregate) => positionId(group, aggregate)),
  );
  return new Map([...found.values()].map((position) => [position.aggregate, position]));
}

/** Batches that are smaller are asked for id by id. */
const RANGE_MIN = 100;
/** Of a batch, on either side: an event that was published much later than its neighbours would stretch the range over everything. */
const OUTLIERS = 0.05;
/** Records that a range may bring for each that is wanted: those of other producers lie between. */
const RECORDS_OF_ONE = 4;

/**
 * The group's records of events. What is published one after the other was mostly written so, and ids follow time: so one range of the index
 * by group and event brings nearly all, and the rest is asked for by exact ids.
 */
async function recordsOf(
  inbox: Collection<InboxDocument>,
  group: string,
  ids: readonly EventId[],
): Promise<ReadonlyMap<EventId, InboxPart>> {
  const records = new Map<EventId, InboxPart>();
  if (ids.length >= RANGE_MIN) {
    const sorted = ids.toSorted(compareStrings);
    const outliers = Math.floor(ids.length * OUTLIERS);
    const [from, to] = [sorted[outliers], sorted[ids.length - 1 - outliers]] as [EventId, EventId];
    const range = { group, eventId: { $gte: from, $lte: to } };
    const limit = ids.length * RECORDS_OF_ONE;
    const cursor = inbox.find<InboxPart>(range, { projection: INBOX_PART, limit, batchSize: limit });
    for await (const record of cursor) records.set(record.eventId, record);
  }
  const exact = await lookUp<InboxPart, EventId>(inbox as unknown as Collection, {
    keys: ids.filter((id) => !records.has(id)),
    filterOf: (keys) => ({ group, eventId: { $in: keys } }),
    projection: INBOX_PART,
  });
  for (const record of exact) records.set(record.eventId, record);
  return records;
}
