import type { OutboxHeadDocument } from '@nightporter/contracts';
import type { AggregateKey } from '@nightporter/protocol';
import type { ClientSession, Collection, MongoClient } from 'mongodb';
import { CONSUMER_COLLECTIONS, OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import { positionId, type GroupDocument, type PositionDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { runTransaction } from './transactions.js';

export interface HeadCopy {
  readonly client: MongoClient;
  readonly heads: Collection<OutboxHeadDocument>;
  /** Where the group starts in each aggregate of a batch. */
  readonly startOf: StartOf;
  readonly producerDatabase: string;
  readonly groups: Collection<GroupDocument>;
  readonly group: string;
  readonly database: string;
  /** Runs a transaction again when it lost to a concurrent one. */
  readonly repeat: <Result>(operation: string, run: () => Promise<Result>) => Promise<Result>;
}

export type Head = Pick<OutboxHeadDocument, '_id' | 'version'>;

/** A position as a group starts with it. */
export interface StartPosition {
  readonly aggregate: AggregateKey;
  readonly version: number;
  readonly startReason?: 'unavailable';
}

export type StartOf = (batch: readonly Head[]) => Promise<readonly StartPosition[]>;

/** Of a group that starts now. */
export const atHeads: StartOf = (batch) =>
  Promise.resolve(batch.map(({ _id, version }) => ({ aggregate: _id as AggregateKey, version })));

export function headsOf(client: MongoClient, producerDatabase: string): Collection<OutboxHeadDocument> {
  return durableDatabase(client, producerDatabase).collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
}

/** The heads behind an aggregate, in the order of their keys. */
export function readHeads(
  heads: Collection<OutboxHeadDocument>,
  { behind, limit }: { behind: string; limit: number },
): Promise<readonly Head[]> {
  return heads
    .find<Head>({ _id: { $gt: behind } }, { projection: { version: 1 } })
    .sort({ _id: 1 })
    .limit(limit)
    .toArray();
}

const BATCH = 200;

/**
 * Sets the positions of a new group, in batches. Each batch commits only while the group is still
 * marked as copying: a member that is slow must not move the start of an aggregate that the others have begun to read. A position that is
 * there stays. What a crash interrupts, the next start completes.
 */
export async function copyHeads(copy: HeadCopy): Promise<void> {
  const { group, groups, heads, producerDatabase, client, repeat, startOf } = copy;
  const operation = `setting the positions of group ${group} by the heads of ${producerDatabase}`;
  let batch: readonly Head[] = [];
  do {
    const behind = batch.at(-1)?._id ?? '';
    const isCopying = await guarded(operation, () => groups.findOne({ _id: group, copyingHeads: true }));
    if (isCopying === null) return;
    batch = await guarded(operation, () => readHeads(heads, { behind, limit: BATCH }));
    const isLast = batch.length < BATCH;
    const starts = await startOf(batch);
    await repeat(operation, () =>
      runTransaction(client, operation, ({ session, own }) =>
        own(operation, () => copyBatch(copy, session, { starts, isLast })),
      ),
    );
    if (isLast) return;
  } while (batch.length > 0);
}

/** A group that starts now has nothing to catch up with. */
const STATE_AFTERWARDS = { $cond: [{ $eq: ['$from', 'now'] }, 'live', '$state'] };
/** The change of the group's document with which its start is over. */
export const COPYING_ENDS = [{ $set: { state: STATE_AFTERWARDS } }, { $unset: 'copyingHeads' }];

async function copyBatch(
  { client, database, group, groups }: HeadCopy,
  session: ClientSession,
  { starts, isLast }: { starts: readonly StartPosition[]; isLast: boolean },
): Promise<void> {
  // Every batch writes the group's document, so that it conflicts with whoever ends the copying.
  const { matchedCount } = await groups.updateOne(
    { _id: group, copyingHeads: true },
    isLast ? COPYING_ENDS : { $inc: { copiedBatches: 1 } },
    { session },
  );
  if (matchedCount === 0 || starts.length === 0) return;
  const positions = durableDatabase(client, database).collection<PositionDocument>(CONSUMER_COLLECTIONS.positions);
  await insertStarts(positions, { group, starts, session });
}

/** A position that is there stays. */
export async function insertStarts(
  positions: Collection<PositionDocument>,
  { group, session, starts }: { group: string; session: ClientSession; starts: readonly StartPosition[] },
): Promise<void> {
  await positions.bulkWrite(
    starts.map(({ aggregate, startReason, version }) => ({
      updateOne: {
        filter: { _id: positionId(group, aggregate) },
        update: {
          $setOnInsert: {
            group,
            aggregate,
            version,
            startVersion: version,
            state: 'open' as const,
            revision: 1,
            ...(startReason === undefined ? {} : { startReason }),
          },
        },
        upsert: true,
      },
    })),
    { session },
  );
}
