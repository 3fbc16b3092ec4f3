/** Which versions of which aggregates a ledger has, as one ordered stream over outbox and archive collections. */
import type { OutboxDocument } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, archivesOf, createFiledRows } from '@nightporter/mongo';
import { aggregateIdentity, aggregateKey, type AggregateKey } from '@nightporter/protocol';
import type { Collection, Db } from 'mongodb';
import type { Hole } from './holes.js';
import { Rising, partsOf } from './lookups.js';
import { compareStrings, mergeSorted } from './ordered.js';

/** Versions of one aggregate that are there, as runs without a hole, rising. */
export interface Present {
  readonly key: AggregateKey;
  /** Of one of its rows; null where no row is left. */
  readonly topic: string | null;
  readonly runs: readonly Hole[];
}

type Place = Pick<OutboxDocument, 'source' | 'aggregateType' | 'aggregateId' | 'topic'> & {
  readonly aggregateVersion: number;
};

const IN_ORDER = { source: 1, aggregateType: 1, aggregateId: 1, aggregateVersion: 1 } as const;
const BATCH = 2_000;

/** In the order of the index by aggregate and version, which every outbox and archive collection has: the server sorts nothing. */
export async function* presentVersions(database: Db): AsyncGenerator<Present> {
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  let current: { first: Place; runs: Hole[] } | null = null;
  for await (const place of mergeSorted([...archives, outbox].map(placesIn), byPlace)) {
    if (current === null || byAggregate(current.first, place) !== 0) {
      if (current !== null) yield presentOf(current);
      current = { first: place, runs: [] };
    }
    addTo(current.runs, place.aggregateVersion);
  }
  if (current !== null) yield presentOf(current);
}

function presentOf({ first, runs }: { readonly first: Place; readonly runs: readonly Hole[] }): Present {
  return { key: aggregateKey(first), topic: first.topic, runs };
}

async function* placesIn(documents: Collection<OutboxDocument>): AsyncGenerator<Place> {
  const cursor = documents
    .find()
    .project<Place>({ _id: 0, ...IN_ORDER, topic: 1 })
    .sort(IN_ORDER)
    .batchSize(BATCH);
  try {
    for await (const place of cursor) if (isPlace(place)) yield place;
  } finally {
    await cursor.close();
  }
}

/** What somebody else has written there may be anything, and stand anywhere in the order; others name it. */
function isPlace({ aggregateId, aggregateType, aggregateVersion, source }: Record<keyof Place, unknown>): boolean {
  return (
    [source, aggregateType, aggregateId].every((part) => typeof part === 'string') &&
    Number.isSafeInteger(aggregateVersion)
  );
}

function byAggregate(left: Place, right: Place): number {
  return (
    compareStrings(left.source, right.source) ||
    compareStrings(left.aggregateType, right.aggregateType) ||
    compareStrings(left.aggregateId, right.aggregateId)
  );
}

function byPlace(left: Place, right: Place): number {
  return byAggregate(left, right) || left.aggregateVersion - right.aggregateVersion;
}

/** Versions rise, and may repeat while a row moves from one place to another. */
function addTo(runs: Hole[], version: number): void {
  const last = runs.at(-1);
  if (last === undefined || version > last.to + 1) runs.push({ from: version, to: version });
  else if (version === last.to + 1) runs[runs.length - 1] = { from: last.from, to: version };
}

/** The runs of versions that are in runs, and of more versions in any order. */
export function withVersions(runs: readonly Hole[], more: readonly number[]): readonly Hole[] {
  const all = [...runs, ...more.map((version) => ({ from: version, to: version }))].toSorted((a, b) => a.from - b.from);
  const merged: Hole[] = [];
  for (const { from, to } of all) {
    const last = merged.at(-1);
    if (last === undefined || from > last.to + 1) merged.push({ from, to });
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, to) };
  }
  return merged;
}

/** The lowest version of each aggregate that outbox, archive collections or files have: it rises as retention deletes. */
export function risingLowest(database: Db): Rising<number> {
  return new Rising({
    heightOf: (version) => version,
    load: async (keys) => {
      const aggregates = keys as readonly AggregateKey[];
      const lowest = new Map<string, number>(aggregates.map((key) => [key, Number.MAX_SAFE_INTEGER]));
      const see = (key: AggregateKey, version: number): void => {
        lowest.set(key, Math.min(lowest.get(key) ?? version, version));
      };
      await eachOfType(database, aggregates, async (documents, { aggregateIds, aggregateType, source }) => {
        const filter = { source, aggregateType, aggregateId: { $in: aggregateIds } };
        const found = documents.aggregate<{ readonly _id: string; readonly version: number }>([
          { $match: filter },
          { $group: { _id: '$aggregateId', version: { $min: '$aggregateVersion' } } },
        ]);
        for await (const { _id: aggregateId, version } of found)
          see(aggregateKey({ source, aggregateType, aggregateId }), version);
      });
      const filed = await createFiledRows(database, null).versionsAmong(new Set(aggregates));
      for (const [key, versions] of filed) for (const version of versions) see(key, version);
      return lowest;
    },
  });
}

/** Those of the aggregates of which outbox or archive collections have any row. */
export async function havingRows(database: Db, keys: readonly AggregateKey[]): Promise<ReadonlySet<AggregateKey>> {
  const found = new Set<AggregateKey>();
  await eachOfType(database, keys, async (documents, { aggregateIds, aggregateType, source }) => {
    const filter = { source, aggregateType, aggregateId: { $in: [...aggregateIds] } };
    for (const aggregateId of await documents.distinct('aggregateId', filter))
      found.add(aggregateKey({ source, aggregateType, aggregateId }));
  });
  return found;
}

/** The topic of an aggregate, by that of any other of its type; null where no row of the type is left. */
export function topicsOfTypes(database: Db): (key: AggregateKey) => Promise<string | null> {
  const known = new Map<string, string | null>();
  return async (key) => {
    const { aggregateType, source } = aggregateIdentity(key);
    const type = JSON.stringify([source, aggregateType]);
    const before = known.get(type);
    if (before !== undefined) return before;
    let topic: string | null = null;
    for (const documents of await collectionsOf(database)) {
      const row = await documents.findOne({ source, aggregateType }, { projection: { topic: 1 } });
      topic ??= row?.topic ?? null;
      if (topic !== null) break;
    }
    known.set(type, topic);
    return topic;
  };
}

/** The outbox and then each archive collection: a row that moves is then in one of them. */
async function collectionsOf(database: Db): Promise<readonly Collection<OutboxDocument>[]> {
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  return [database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ...archives];
}

interface OfOneType {
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateIds: readonly string[];
}

/** Asks each collection for so many aggregates of one type at a time. */
async function eachOfType(
  database: Db,
  keys: readonly AggregateKey[],
  ask: (documents: Collection<OutboxDocument>, some: OfOneType) => Promise<void>,
): Promise<void> {
  const byType = new Map<string, { source: string; aggregateType: string; ids: string[] }>();
  for (const key of keys) {
    const { aggregateId, aggregateType, source } = aggregateIdentity(key);
    const type = JSON.stringify([source, aggregateType]);
    const entry = byType.get(type) ?? { source, aggregateType, ids: [] };
    entry.ids.push(aggregateId);
    byType.set(type, entry);
  }
  for (const documents of await collectionsOf(database))
    for (const { aggregateType, ids, source } of byType.values())
      for (const aggregateIds of partsOf(ids)) await ask(documents, { source, aggregateType, aggregateIds });
}
