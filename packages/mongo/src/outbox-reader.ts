import type { OutboxDocument, OutboxHeadDocument, OutboxRow } from '@nightporter/contracts';
import {
  aggregateIdentity,
  slotOf,
  type AggregateKey,
  type EventId,
  type Namespace,
  type Slot,
} from '@nightporter/protocol';
import type { OutboxReader, RowReference, SweepCursor } from '@nightporter/relay';
import type { Filter, FindOptions, MongoClient, Sort } from 'mongodb';
import { filedAmong } from './archive-catalogue.js';
import { archivesOf } from './archives.js';
import { groupedBy, mapAtOnce, partsOf } from './batches.js';
import { OUTBOX_COLLECTIONS, namespaceParts } from './collections.js';
import { durableDatabase } from './database.js';
import { createDatabaseClock, type DatabaseClock } from './database-clock.js';
import { guarded } from './driver-errors.js';
import type { Doubted, IndexDoubts } from './index-doubts.js';
import { outboxCollection } from './outbox-collection.js';
import { needsMoment, outboxRow } from './outbox-rows.js';

interface Reading {
  readonly client: MongoClient;
  readonly clock: DatabaseClock;
  readonly claimMs: number;
  readonly owner: string;
  /** Outboxes that are to be scanned: rows may be missing from their indexes. */
  readonly doubted: Doubted;
}

/** Past every index. */
const BY_SCAN: FindOptions = { hint: { $natural: 1 } };

const IN_ORDER: Sort = { source: 1, aggregateType: 1, aggregateId: 1, aggregateVersion: 1 };

export interface OutboxReaderOptions {
  readonly client: MongoClient;
  /** What sweeps go over. */
  readonly namespaces: readonly Namespace[];
  /** How long a claim (PROCESSING) stands. */
  readonly claimMs: number;
  /** The relay that reads: its own claims are shown as PENDING. */
  readonly owner: string;
  readonly doubts: IndexDoubts;
}

/** Reads outboxes on the index of what is unsettled, or by scan where that may lack rows, and by id. */
export function createOutboxReader(options: OutboxReaderOptions): OutboxReader {
  const { client, namespaces, claimMs, doubts, owner } = options;
  const clock = createDatabaseClock(client);
  const reading = (doubted: Doubted): Reading => ({ client, clock, claimMs, owner, doubted });
  const byId = reading(new Set());
  const swept = [...namespaces].sort();
  return {
    readUnsettled: (request) =>
      guarded(`reading slot ${request.slot} of ${swept.join(', ')}`, () =>
        doubts.read((doubted) => readUnsettled(reading(doubted), swept, request)),
      ),
    readLanes: (lanes, limitPerAggregate) =>
      guarded('reading lanes', () => doubts.read((doubted) => readLanes(reading(doubted), lanes, limitPerAggregate))),
    lookUp: (references) => guarded('looking outbox rows up', () => lookUp(byId, references)),
  };
}

async function readUnsettled(
  reading: Reading,
  namespaces: readonly Namespace[],
  request: Parameters<OutboxReader['readUnsettled']>[0],
): Promise<OutboxRow[]> {
  const { slot, after, limit } = request;
  const rows: OutboxRow[] = [];
  for (const namespace of namespaces) {
    if (after !== null && namespace < after.namespace) continue;
    for (const filter of pageFilters(slot, after?.namespace === namespace ? after : null)) {
      if (rows.length === limit) return rows;
      const options = reading.doubted.has(namespace) ? BY_SCAN : {};
      const found = outboxCollection(reading.client, namespace).find(filter, options).sort(IN_ORDER);
      rows.push(...(await rowsOf(reading, namespace, await found.limit(limit - rows.length).toArray())));
    }
  }
  return rows;
}

/**
 * The rows behind a cursor as consecutive ranges of the index, each with equalities first and one range last: the rest of the
 * aggregate, of its type, of its source, and of the slot. One condition with `$or` would be a scan on SecantusDB.
 */
export function pageFilters(slot: Slot, after: SweepCursor | null): Filter<OutboxDocument>[] {
  const unsettled = { unsettled: true as const, slot };
  if (after === null) return [{ ...unsettled, source: { $gte: '' } }];
  const { source, aggregateType, aggregateId, aggregateVersion } = after;
  return [
    { ...unsettled, source, aggregateType, aggregateId, aggregateVersion: { $gt: aggregateVersion } },
    { ...unsettled, source, aggregateType, aggregateId: { $gt: aggregateId } },
    { ...unsettled, source, aggregateType: { $gt: aggregateType } },
    { ...unsettled, source: { $gt: source } },
  ];
}

const LANES_AT_ONCE = 8;

async function readLanes(
  reading: Reading,
  lanes: Parameters<OutboxReader['readLanes']>[0],
  limit: number,
): Promise<OutboxRow[]> {
  const rows: OutboxRow[] = [];
  for (const [namespace, ofNamespace] of [...groupedBy(lanes, (lane) => lane.namespace)].sort(byKey)) {
    const outbox = outboxCollection(reading.client, namespace);
    const aggregates = [...new Set(ofNamespace.map((lane) => lane.aggregate))].sort(byIdentity);
    const slots = await slotsOf(reading.client, namespace, aggregates);
    const found = await mapAtOnce(aggregates, LANES_AT_ONCE, (aggregate) =>
      outbox
        .find(laneFilter(aggregate, slots.get(aggregate)), reading.doubted.has(namespace) ? BY_SCAN : {})
        .sort({ aggregateVersion: 1 })
        .limit(limit)
        .toArray(),
    );
    rows.push(...(await rowsOf(reading, namespace, found.flat())));
  }
  return rows;
}

/** Without the slot, which only a row whose head is gone lacks, the index cannot be used. */
function laneFilter(aggregate: AggregateKey, slot: Slot | undefined): Filter<OutboxDocument> {
  const lane = { unsettled: true as const, ...aggregateIdentity(aggregate) };
  return slot === undefined
    ? lane
    : { ...lane, slot, aggregateVersion: { $gte: 0 as OutboxDocument['aggregateVersion'] } };
}

/** The slot follows from the event key, which only the aggregate's head is sure to have. */
async function slotsOf(
  client: MongoClient,
  namespace: Namespace,
  aggregates: readonly AggregateKey[],
): Promise<ReadonlyMap<string, Slot>> {
  const database = durableDatabase(client, namespaceParts(namespace).database);
  const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const found = await heads.find({ _id: { $in: [...aggregates] } }, { projection: { eventKey: 1 } }).toArray();
  return new Map(found.map((head) => [head._id, slotOf(head.eventKey)]));
}

/** Ids in one statement. */
const LOOK_UP_MAX = 200;

async function lookUp(
  reading: Reading,
  references: readonly RowReference[],
): Promise<ReadonlyMap<EventId, OutboxRow | 'archived' | 'missing'>> {
  const found = new Map<EventId, OutboxRow | 'archived' | 'missing'>();
  for (const [namespace, ofNamespace] of groupedBy(references, (reference) => reference.namespace)) {
    const ids = [...new Set(ofNamespace.map((reference) => reference.eventId))];
    for (const part of partsOf(ids, LOOK_UP_MAX)) await lookUpPart(reading, namespace, part, found);
  }
  return found;
}

/** Outbox, archive, outbox: a row that moves into the archive in between is seen in one of them. */
async function lookUpPart(
  reading: Reading,
  namespace: Namespace,
  ids: readonly EventId[],
  found: Map<EventId, OutboxRow | 'archived' | 'missing'>,
): Promise<void> {
  const unknown = (): EventId[] => ids.filter((id) => !found.has(id));
  await lookUpInOutbox(reading, namespace, ids, found);
  if (unknown().length === 0) return;
  for (const id of await archivedAmong(reading.client, namespace, unknown())) found.set(id, 'archived');
  if (unknown().length === 0) return;
  await lookUpInOutbox(reading, namespace, unknown(), found);
  for (const id of unknown()) found.set(id, 'missing');
}

async function lookUpInOutbox(
  reading: Reading,
  namespace: Namespace,
  ids: readonly EventId[],
  found: Map<EventId, OutboxRow | 'archived' | 'missing'>,
): Promise<void> {
  const documents = await outboxCollection(reading.client, namespace)
    .find({ _id: { $in: [...ids] } })
    .toArray();
  for (const row of await rowsOf(reading, namespace, documents)) found.set(row.eventId, row);
}

async function archivedAmong(client: MongoClient, namespace: Namespace, ids: readonly EventId[]): Promise<EventId[]> {
  const database = durableDatabase(client, namespaceParts(namespace).database);
  const found: EventId[] = await filedAmong(database, ids);
  for (const { documents } of await archivesOf(database)) {
    const archived = await documents.find({ _id: { $in: [...ids] } }, { projection: { _id: 1 } }).toArray();
    found.push(...archived.map((document) => document._id));
  }
  return found;
}

async function rowsOf(
  { clock, claimMs, owner }: Reading,
  namespace: Namespace,
  documents: readonly OutboxDocument[],
): Promise<OutboxRow[]> {
  const moment = documents.some(needsMoment) ? { now: await clock.read(), claimMs, owner } : null;
  return documents.map((document) => outboxRow(namespace, document, moment));
}

function byKey(left: readonly [string, unknown], right: readonly [string, unknown]): number {
  return left[0] < right[0] ? -1 : 1;
}

/** The order of the identity's parts, which percent-encoding does not keep. */
function byIdentity(left: AggregateKey, right: AggregateKey): number {
  const [one, other] = [aggregateIdentity(left), aggregateIdentity(right)];
  for (const part of ['source', 'aggregateType', 'aggregateId'] as const) {
    if (one[part] !== other[part]) return one[part] < other[part] ? -1 : 1;
  }
  return 0;
}
