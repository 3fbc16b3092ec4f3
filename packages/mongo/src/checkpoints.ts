import { resumeToken } from '@nightporter/protocol';
import type { CheckpointClaim, CheckpointStore } from '@nightporter/relay';
import type { Collection, Db } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import type { CheckpointDocument } from './documents.js';
import { faultOf, guarded } from './driver-errors.js';

/** Checkpoints in `relay_checkpoints`: each claim and each save is one conditional update. */
export function createCheckpointStore(database: Db): CheckpointStore {
  const checkpoints = database.collection<CheckpointDocument>(RELAY_COLLECTIONS.checkpoints);
  const place = `${database.databaseName}.${RELAY_COLLECTIONS.checkpoints}`;
  return {
    claim: (request) => guarded(`claiming ${request.shard} in ${place}`, () => claim(checkpoints, request)),
    save: ({ shard, epoch, seq, token }) =>
      guarded(`saving ${shard} in ${place}`, async () => {
        const { matchedCount } = await checkpoints.updateOne(
          { _id: shard, epoch, seq: { $lt: seq } },
          { $set: { seq, token }, $currentDate: { updatedAt: true } },
        );
        return matchedCount === 1 ? 'saved' : 'fenced';
      }),
  };
}

/** Where a later claim or a save of this epoch stands, nothing matches, and the upsert meets the existing document. */
async function claim(
  checkpoints: Collection<CheckpointDocument>,
  { shard, epoch }: Parameters<CheckpointStore['claim']>[0],
): Promise<CheckpointClaim> {
  try {
    const claimed = await checkpoints.findOneAndUpdate(
      { _id: shard, $or: [{ epoch: { $lt: epoch } }, { epoch, seq: 0 }] },
      [{ $set: { epoch, seq: 0, token: { $ifNull: ['$token', null] }, updatedAt: '$$NOW' } }],
      { upsert: true, returnDocument: 'after' },
    );
    const token = claimed?.token ?? null;
    return { kind: 'claimed', token: token === null ? null : resumeToken(token) };
  } catch (error) {
    if (faultOf(error) === 'duplicate-key') return { kind: 'fenced' };
    throw error;
  }
}
