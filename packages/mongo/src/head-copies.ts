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
  readonly producerDatabase: string;
  readonly groups: Collection<GroupDocument>;
  readonly group: string;
  readonly database: string;
  /** Runs a transaction again when it lost to a concurrent one. */
  readonly repeat: <Result>(operation: string, run: () => Promise<Result>) => Promise<Result>;
}

type Head = Pick<OutboxHeadDocument, '_id' | 'version'>;

const BATCH = 200;

/**
 * Sets the positions of a group that starts now to the heads of its producer, in batches. Each batch commits only while the group is still
 * marked as copying: a member that is slow must not move the start of an aggregate that the others have begun to read. A position that is
 * there stays. What a crash interrupts, the next start completes.
 */
export async function copyHeads(copy: HeadCopy): Promise<void> {
  const { group, groups, producerDatabase, client, repeat } = copy;
  const heads = durableDatabase(client, producerDatabase).collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const operation = `setting the positions of group ${group} to the heads of ${producerDatabase}`;
  let batch: readonly Head[] = [];
  do {
    const behind = batch.at(-1)?._id ?? '';
    const isCopying = await guarded(operation, () => groups.findOne({ _id: group, copyingHeads: true }));
    if (isCopying === null) return;
    batch = await guarded(operation, () =>
      heads
        .find<Head>({ _id: { $gt: behind } }, { projection: { version: 1 } })
        .sort({ _id: 1 })
        .limit(BATCH)
        .toArray(),
    );
    const isLast = batch.length < BATCH;
    await repeat(operation, () =>
      runTransaction(client, operation, ({ session, own }) =>
        own(operation, () => copyBatch(copy, session, { batch, isLast })),
      ),
    );
    if (isLast) return;
  } while (batch.length > 0);
}

async function copyBatch(
  { client, database, group, groups }: HeadCopy,
  session: ClientSession,
  { batch, isLast }: { batch: readonly Head[]; isLast: boolean },
): Promise<void> {
  // Every batch writes the group's document, so that it conflicts with whoever ends the copying.
  const { matchedCount } = await groups.updateOne(
    { _id: group, copyingHeads: true },
    isLast ? { $set: { state: 'live' }, $unset: { copyingHeads: true } } : { $inc: { copiedBatches: 1 } },
    { session },
  );
  if (matchedCount === 0 || batch.length === 0) return;
  const positions = durableDatabase(client, database).collection<PositionDocument>(CONSUMER_COLLECTIONS.positions);
  await positions.bulkWrite(
    batch.map(({ _id: aggregate, version }) => ({
      updateOne: {
        filter: { _id: positionId(group, aggregate as AggregateKey) },
        update: {
          $setOnInsert: {
            group,
            aggregate: aggregate as AggregateKey,
            version,
            startVersion: version,
            state: 'open' as const,
            revision: 1,
          },
        },
        upsert: true,
      },
    })),
    { session },
  );
}
