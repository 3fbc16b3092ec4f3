import { aggregateKey } from '@nightporter/protocol';
import type { OutboxDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  createLedgerRows,
  positionId,
  type InboxDocument,
  type LedgerRows,
  type ParkedDocument,
  type PositionDocument,
} from '@nightporter/mongo';
import type { Db, Filter } from 'mongodb';
import type { EventFacts } from './facts.js';
import { groupBy, type FactsQuery } from './read-facts.js';

/** Reads the events of orders, wherever retention has put them. */
export interface EventReader {
  rowsOf(orderIds: readonly string[]): Promise<readonly OutboxDocument[]>;
  /** By order. */
  factsOf(rows: readonly OutboxDocument[]): Promise<ReadonlyMap<string, readonly EventFacts[]>>;
  /** What could not be read up to now, in whole sentences. */
  notKnown(): readonly string[];
}

/** The roles whose groups read events; each group's inbox is in the database of its role. */
const HOMES = ['inventory', 'shipping', 'orders', 'points', 'warehouse', 'notification'] as const;
const PRODUCERS = [
  ['orders', 'order'],
  ['inventory', 'reservation'],
  ['shipping', 'shipment'],
] as const;

export function createEventReader(query: FactsQuery): EventReader {
  const { archive: files = null, client, databases } = query;
  const unread = { closed: 0, deleted: 0, reason: '' };
  const ledgers = PRODUCERS.map(([source, aggregateType]): [object: Kind, ledger: LedgerRows] => [
    { source, aggregateType },
    createLedgerRows({ client, database: databases[source], files }),
  ]);
  return {
    async rowsOf(ids) {
      const found = await Promise.all(ledgers.map(([kind, ledger]) => ledger.readAggregates({ ...kind, ids })));
      for (const { deleted, unreadable } of found) {
        unread.deleted += deleted;
        for (const { places, reason } of unreadable) {
          unread.closed += places.length;
          unread.reason ||= reason;
        }
      }
      return found.flatMap(({ documents }) => documents);
    },
    factsOf: (rows) => eventFactsOf(rows, query),
    notKnown: () => notesOf(unread),
  };
}

interface Kind {
  readonly source: string;
  readonly aggregateType: string;
}

const EFFECT =
  'Their effects are compared; where a chain broke at one of them, it is not named, and what was told and landed of them is not compared.';

function notesOf({ closed, deleted, reason }: { closed: number; deleted: number; reason: string }): readonly string[] {
  return [
    ...(closed === 0
      ? []
      : [`${closed} events lie in archive files that cannot be read from here. ${EFFECT} ${reason}`]),
    ...(deleted === 0 ? [] : [`${deleted} events are in neither outbox nor archive any more. ${EFFECT}`]),
  ];
}

async function eventFactsOf(
  found: readonly OutboxDocument[],
  { client, databases, groups }: FactsQuery,
): Promise<ReadonlyMap<string, readonly EventFacts[]>> {
  const outcomes = await Promise.all(
    HOMES.map(async (role) => {
      const [database, group] = [databases[role], groups[role]];
      if (database === undefined || group === undefined) return null;
      return { group, outcomes: await outcomesOf(client.db(database), group, found) };
    }),
  );
  const facts = found.map((row) => ({
    aggregateId: row.aggregateId,
    eventId: row._id,
    eventType: row.eventType,
    aggregateType: row.aggregateType,
    version: row.aggregateVersion,
    status: row.status,
    transactionId: transactionOf(row),
    groups: Object.fromEntries(
      outcomes.flatMap((of) => {
        const outcome = of?.outcomes.get(row._id);
        return of === null || outcome === undefined ? [] : [[of.group, outcome]];
      }),
    ),
  }));
  return groupBy(facts, ({ aggregateId }) => aggregateId);
}

function transactionOf({ payload }: OutboxDocument): string | null {
  const transactionId = isRecord(payload) ? payload['transactionId'] : null;
  return typeof transactionId === 'string' ? transactionId : null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

async function outcomesOf(
  db: Db,
  group: string,
  rows: readonly OutboxDocument[],
): Promise<ReadonlyMap<string, string>> {
  const eventIds = rows.map(({ _id }) => _id);
  const [inbox, parked] = await Promise.all([
    db
      .collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox)
      .find({ group, eventId: { $in: eventIds } } as Filter<InboxDocument>)
      .toArray(),
    db
      .collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked)
      .find({ group, 'event.eventId': { $in: eventIds } } as Filter<ParkedDocument>)
      .toArray(),
  ]);
  const outcomes = new Map<string, string>([
    ...parked.map(({ event, state }) => [event.eventId as string, `parked (${state})`] as const),
    ...inbox.map(({ appliedDigest, digest, eventId, outcome }) => {
      const isEdited = outcome === 'applied' && appliedDigest !== digest;
      return [eventId, isEdited ? 'applied (edited)' : outcome] as const;
    }),
  ]);
  const left = rows.filter(({ _id }) => !outcomes.has(_id));
  for (const id of await pastAmong(db, group, left)) outcomes.set(id, 'past');
  return outcomes;
}

/** Those that the group has behind it, and whose records have expired: by its positions, which never do. */
async function pastAmong(db: Db, group: string, rows: readonly OutboxDocument[]): Promise<readonly string[]> {
  const idOf = (row: OutboxDocument): string => positionId(group, aggregateKey(row));
  const ids = [...new Set(rows.map(idOf))];
  if (ids.length === 0) return [];
  const found = await db
    .collection<PositionDocument>(CONSUMER_COLLECTIONS.positions)
    .find({ _id: { $in: ids } } as Filter<PositionDocument>)
    .toArray();
  const positions = new Map<string, PositionDocument>(found.map((position) => [position._id, position]));
  return rows
    .filter((row) => {
      const position = positions.get(idOf(row));
      if (position === undefined) return false;
      return row.aggregateVersion > position.startVersion && row.aggregateVersion <= position.version;
    })
    .map(({ _id }) => _id);
}
