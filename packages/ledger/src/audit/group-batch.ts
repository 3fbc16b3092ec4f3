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
import type { RowFacts } from './judge.js';
import type { PublishedRow } from './rows.js';

type InboxPart = Pick<InboxDocument, '_id' | 'eventId' | 'outcome' | 'digest' | 'appliedDigest'>;
const INBOX_PART = { eventId: 1, outcome: 1, digest: 1, appliedDigest: 1 } as const;

/**
 * What a group has of a batch of rows, by exact ids. Rows are read before and the group after, so that what is settled meanwhile is found.
 * Only for what its place in the inbox does not show is anything else looked up.
 */
export async function readGroupBatch(
  home: GroupPlace,
  rows: readonly PublishedRow[],
  watermarkMs: number | null,
): Promise<readonly RowFacts[]> {
  const { group } = home;
  const database = durableDatabase(home.client, home.database);
  const inbox = database.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  const parked = database.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
  const places = rows.map((row) => ({ row, aggregate: aggregateKey(row), id: idOf(group, row) }));
  const positions = await positionsOf(
    database.collection(CONSUMER_COLLECTIONS.positions),
    group,
    places.map(({ aggregate }) => aggregate),
  );
  const ids = places.map(({ id }) => id);
  const settledHere = byId(await inbox.find<InboxPart>({ _id: { $in: ids } }, { projection: INBOX_PART }).toArray());
  const others = places.filter(({ id, row }) => settledHere.get(id)?.eventId !== row._id);
  const nextIds = others.map(({ aggregate }) =>
    placeId(group, aggregate, (positions.get(aggregate)?.version ?? 0) + 1),
  );
  const parkedIds = [...new Set([...others.map(({ id }) => id), ...nextIds])];
  const waiting = byId(parkedIds.length === 0 ? [] : await parked.find({ _id: { $in: parkedIds } }).toArray());
  const elsewhere = await settledElsewhere(
    inbox,
    group,
    others.map(({ row }) => row._id),
  );
  return places.map(({ aggregate, id, row }): RowFacts => {
    const here = settledHere.get(id) ?? null;
    const settled = here?.eventId === row._id ? here : (elsewhere.get(row._id) ?? null);
    const position = positions.get(aggregate) ?? null;
    const parkedHere = waiting.get(id);
    const parkedNext = waiting.get(placeId(group, aggregate, (position?.version ?? 0) + 1));
    const form = row.publication?.form ?? (row.skip === null ? 'original' : 'tombstone');
    return {
      eventId: row._id,
      version: row.aggregateVersion,
      publishedAtMs: row.publishedAt.getTime(),
      position: positionNote(position),
      settledAs:
        settled === null ? null : { outcome: settled.outcome, isEdited: settled.appliedDigest !== settled.digest },
      settledHere: here?.eventId ?? null,
      parkedHere: parkedHere === undefined ? null : parkedNote(parkedHere),
      parkedNext: parkedNext === undefined ? null : parkedNote(parkedNext),
      watermarkMs,
      digest: form === 'original' ? row.digest : digestOf(envelopeOf(row, form)),
      form,
      unanswered: row.unanswered,
      settledDigest: settled?.digest ?? null,
    };
  });
}

function idOf(group: string, row: PublishedRow): string {
  return placeId(group, aggregateKey(row), row.aggregateVersion);
}

/** Positions by aggregate. */
export async function positionsOf(
  positions: Collection<PositionDocument>,
  group: string,
  aggregates: readonly AggregateKey[],
): Promise<ReadonlyMap<AggregateKey, PositionDocument>> {
  const ids = [...new Set(aggregates)].map((aggregate) => positionId(group, aggregate));
  const found = await positions.find({ _id: { $in: ids } }).toArray();
  return new Map(found.map((position) => [position.aggregate, position]));
}

function byId<Part extends { readonly _id: string }>(documents: readonly Part[]): ReadonlyMap<string, Part> {
  return new Map(documents.map((document) => [document._id, document]));
}

/** Events that the inbox has at another version than the ledger. */
async function settledElsewhere(
  inbox: Collection<InboxDocument>,
  group: string,
  ids: readonly EventId[],
): Promise<ReadonlyMap<EventId, InboxPart>> {
  if (ids.length === 0) return new Map();
  const found = await inbox
    .find<InboxPart>({ group, eventId: { $in: [...ids] } }, { projection: INBOX_PART })
    .toArray();
  return new Map(found.map((record) => [record.eventId, record]));
}
