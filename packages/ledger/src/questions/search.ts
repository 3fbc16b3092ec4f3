import type { OutboxDocument, OutboxStatus } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, archivesOf, durableDatabase, guarded } from '@nightporter/mongo';
import { eventId, type EventId } from '@nightporter/protocol';
import type { Collection, Filter } from 'mongodb';
import { invalid } from '../requests.js';
import type { EventSummary } from './contract.js';
import type { Deployment, ProducerPlace } from './deployment.js';
import { summaryOf } from './timeline.js';

export const SEARCH_LIMIT_MAX = 200;

/** All that is given must hold. */
export interface SearchFilter {
  readonly producer?: string;
  readonly topic?: string;
  readonly eventType?: string;
  readonly aggregateType?: string;
  readonly aggregateId?: string;
  readonly status?: OutboxStatus;
  readonly tenantId?: string;
  readonly correlationId?: string;
  readonly causationId?: string;
  /** By when the event was created. */
  readonly from?: Date;
  /** Exclusive. */
  readonly to?: Date;
}

export interface SearchPage {
  /** Newest first. */
  readonly events: readonly EventSummary[];
  /** To ask for what follows; null at the end. */
  readonly cursor: string | null;
  /** What could not be looked through. */
  readonly notKnown: readonly string[];
}

export interface SearchRequest extends SearchFilter {
  /** Events at most. Default 50, most {@link SEARCH_LIMIT_MAX}. */
  readonly limit?: number;
  readonly cursor?: string;
  /** How long one collection may take. Default 10,000 ms. */
  readonly timeoutMs?: number;
}

/** An id holds the producer's clock, and `createdAt` the same: far more than what lies between the two readings. */
const ID_MARGIN_MS = 3_600_000;

/**
 * Searches outboxes and archive collections, newest event first by its id. A moment bounds what is read, since ids begin with their moment; without
 * one, and with conditions that have no index, whole collections may be read, within `timeoutMs` each. Rejects with NP_ACTION_INVALID for
 * a request that is out of range, and with NP_STORE_UNAVAILABLE where it takes too long.
 */
export async function search(deployment: Deployment, request: SearchRequest): Promise<SearchPage> {
  const { limit = 50, timeoutMs = 10_000, cursor } = request;
  assertRequest({ limit, timeoutMs, cursor });
  const filter = filterOf(request, cursor === undefined ? null : eventId(cursor));
  const producers = deployment.producers.filter(
    ({ database }) => request.producer === undefined || database === request.producer,
  );
  const found = new Map<EventId, EventSummary>();
  const notKnown: string[] = [];
  for (const producer of producers) {
    for (const event of await searchIn(producer, { filter, limit: limit + 1, timeoutMs })) {
      // The same row in outbox and archive moved meanwhile.
      if (!found.has(event.eventId)) found.set(event.eventId, event);
    }
    notKnown.push(...(await filesNote(producer)));
  }
  const newest = [...found.values()].sort((left, right) => (left.eventId < right.eventId ? 1 : -1));
  const events = newest.slice(0, limit);
  return { events, cursor: newest.length > limit ? (events.at(-1)?.eventId ?? null) : null, notKnown };
}

function assertRequest({
  limit,
  timeoutMs,
  cursor,
}: {
  limit: number;
  timeoutMs: number;
  cursor?: string | undefined;
}): void {
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > SEARCH_LIMIT_MAX)
    throw invalid(`limit is ${limit}; accepted: a whole number from 1 to ${SEARCH_LIMIT_MAX}.`);
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > 600_000)
    throw invalid(`timeoutMs is ${timeoutMs}; accepted: a whole number from 1 to 600000.`);
  if (cursor !== undefined && (cursor === '' || cursor.length > 200))
    throw invalid('cursor is not one that a search has given; accepted: the cursor of a page as it came.');
}

function filterOf(request: SearchFilter, before: EventId | null): Filter<OutboxDocument> {
  const { aggregateId, aggregateType, causationId, correlationId, eventType, from, status, tenantId, to, topic } =
    request;
  const given = (name: string, value: unknown): object => (value === undefined ? {} : { [name]: value });
  const created = { ...given('$gte', from), ...given('$lt', to) };
  const ids = {
    ...(before === null ? {} : { $lt: before }),
    ...(from === undefined ? {} : { $gte: idAt(from.getTime() - ID_MARGIN_MS) }),
  };
  const upper = to === undefined ? null : idAt(to.getTime() + ID_MARGIN_MS);
  const bounded = upper === null || (before !== null && before < upper) ? ids : { ...ids, $lt: upper };
  return {
    ...(Object.keys(bounded).length === 0 ? {} : { _id: bounded }),
    ...(Object.keys(created).length === 0 ? {} : { createdAt: created }),
    ...given('topic', topic),
    ...given('eventType', eventType),
    ...given('aggregateType', aggregateType),
    ...given('aggregateId', aggregateId),
    ...given('status', status),
    ...given('headers.tenantId', tenantId),
    ...given('headers.correlationId', correlationId),
    ...given('headers.causationId', causationId),
  };
}

/** The lowest UUIDv7 of a moment. */
function idAt(ms: number): EventId {
  const hex = Math.max(0, ms).toString(16).padStart(12, '0');
  return eventId(`${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`);
}

interface Query {
  readonly filter: Filter<OutboxDocument>;
  readonly limit: number;
  readonly timeoutMs: number;
}

async function searchIn({ client, database: name }: ProducerPlace, query: Query): Promise<readonly EventSummary[]> {
  const database = durableDatabase(client, name);
  return guarded(`searching ${name}`, async () => {
    const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
    const archives = (await archivesOf(database)).map(({ documents }) => documents);
    const found: EventSummary[] = [];
    for (const documents of [outbox, ...archives]) {
      const rows = await readPage(documents, query);
      found.push(...rows.map((row) => summaryOf(row, { producer: name, place: documents.collectionName })));
    }
    return found;
  });
}

function readPage(documents: Collection<OutboxDocument>, { filter, limit, timeoutMs }: Query) {
  return documents
    .find(filter, { maxTimeMS: timeoutMs })
    .project<Omit<OutboxDocument, 'payload'>>({ payload: 0 })
    .sort({ _id: -1 })
    .limit(limit)
    .toArray();
}

async function filesNote({ client, database }: ProducerPlace): Promise<readonly string[]> {
  const files = durableDatabase(client, database).collection(OUTBOX_COLLECTIONS.files);
  const some = await guarded(`reading ${files.namespace}`, () =>
    files.findOne({ state: 'archived' }, { projection: { _id: 1 } }),
  );
  return some === null
    ? []
    : [`Archive files of ${database} are not searched; ask for an event or an aggregate by its id.`];
}
