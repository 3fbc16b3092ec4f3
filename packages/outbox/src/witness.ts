import type { OutboxDocument, OutboxHeadDocument } from '@nightporter/contracts';
import type { AggregateKey, AggregateVersion, EventId } from '@nightporter/protocol';
import type { Collection } from 'mongodb';

/** Proof of an event in a transaction whose commit had no clear answer. */
export interface Receipt {
  readonly eventId: EventId;
  readonly aggregate: AggregateKey;
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
  readonly aggregateVersion: AggregateVersion;
}

/** What the database tells about a transaction: `unclear` when neither its events nor those of another stand at its versions. */
export type Testimony = 'committed' | 'absent' | 'unclear';

export interface Evidence {
  /** Of the transaction's event ids, how many are in the outbox. */
  readonly eventsFound: number;
  /** Versions of the heads of its aggregates; absent is 0. */
  readonly heads: ReadonlyMap<AggregateKey, number>;
  /** Event ids at the versions that the transaction took, where there are any. */
  readonly holders: readonly EventId[];
}

/**
 * One event found is enough: a transaction is all or nothing. None found is not: a row may have been deleted right after its
 * insert. Then the heads tell, which are never deleted, and last the row that holds the version.
 */
export function testimonyOf(receipts: readonly Receipt[], evidence: Evidence): Testimony {
  if (evidence.eventsFound > 0) return 'committed';
  const below = receipts.some(
    ({ aggregate, aggregateVersion }) => (evidence.heads.get(aggregate) ?? 0) < aggregateVersion,
  );
  if (below) return 'absent';
  return evidence.holders.length > 0 ? 'absent' : 'unclear';
}

interface Ledger {
  readonly outbox: Collection<OutboxDocument>;
  readonly heads: Collection<OutboxHeadDocument>;
}

/** Reads with majority, outside any session, and only as much as is needed. */
export async function askLedger({ outbox, heads }: Ledger, receipts: readonly Receipt[]): Promise<Testimony> {
  const ids = receipts.map(({ eventId }) => eventId);
  const eventsFound = (await outbox.find({ _id: { $in: ids } }, { ...MAJORITY, projection: { _id: 1 } }).toArray())
    .length;
  const nothing: Evidence = { eventsFound, heads: new Map(), holders: [] };
  if (eventsFound > 0) return testimonyOf(receipts, nothing);
  const found = await heads.find({ _id: { $in: receipts.map(({ aggregate }) => aggregate) } }, MAJORITY).toArray();
  const versions = new Map(found.map(({ _id, version }) => [_id as AggregateKey, version]));
  const testimony = testimonyOf(receipts, { ...nothing, heads: versions });
  if (testimony !== 'unclear') return testimony;
  const taken = receipts.map(({ source, aggregateType, aggregateId, aggregateVersion }) => ({
    source,
    aggregateType,
    aggregateId,
    aggregateVersion,
  }));
  const holders = await outbox.find({ $or: taken }, { ...MAJORITY, projection: { _id: 1 } }).toArray();
  return testimonyOf(receipts, { ...nothing, heads: versions, holders: holders.map(({ _id }) => _id) });
}

const MAJORITY = { readConcern: { level: 'majority' }, readPreference: 'primary' } as const;
