import type { GroupRegistry, GroupStanding, SweepClaim } from '@nightporter/consumer';
import type { Collection, MongoClient } from 'mongodb';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import type { GroupDocument } from './documents.js';
import { guarded } from './driver-errors.js';

/** Both sides as numbers: SecantusDB compares a stored date with `$$NOW` wrongly. */
const CLAIM_IS_OVER = { $lte: [{ $toLong: '$sweeper.until' }, { $toLong: '$$NOW' }] };

/** A group's entry in the `groups` of one producer. */
export function createGroupRegistry(options: {
  client: MongoClient;
  /** The producer's. */
  database: string;
  group: string;
}): GroupRegistry {
  const { client, database, group } = options;
  const groups = durableDatabase(client, database).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const place = `group ${group} in ${groups.namespace}`;
  return {
    group,
    claim: (request) => guarded(`claiming the sweep of ${place}`, () => claim(groups, group, request)),
    advance: ({ floorMs, toMs }) =>
      guarded(`moving the watermark of ${place}`, async () => {
        await groups.updateOne({ _id: group, floor: new Date(floorMs), watermark: { $lt: new Date(toMs) } }, [
          { $set: { watermark: new Date(toMs) } },
          { $set: { state: { $cond: [isPast(toMs), 'live', '$state'] } } },
        ]);
      }),
    standing: () => guarded(`looking for ${place}`, () => standing(groups, group)),
    release: (owner) =>
      guarded(`releasing the sweep of ${place}`, async () => {
        await groups.updateOne({ _id: group, 'sweeper.owner': owner }, { $set: { sweeper: null } });
      }),
  };
}

async function standing(groups: Collection<GroupDocument>, group: string): Promise<GroupStanding | null> {
  const found = await groups.findOne({ _id: group }, { projection: { state: 1, topics: 1, watermark: 1 } });
  if (found === null) return null;
  return { state: found.state, topics: found.topics, watermarkMs: found.watermark.getTime() };
}

function isPast(toMs: number): object {
  return { $lt: [{ $toLong: '$floor' }, toMs] };
}

async function claim(
  groups: Collection<GroupDocument>,
  group: string,
  { durationMs, owner }: Parameters<GroupRegistry['claim']>[0],
): Promise<SweepClaim> {
  const free = [{ sweeper: null }, { 'sweeper.owner': owner }, { $expr: CLAIM_IS_OVER }];
  const claimed = await groups.findOneAndUpdate(
    { _id: group, $or: free },
    [{ $set: { sweeper: { owner: { $literal: owner }, until: { $add: ['$$NOW', durationMs] } } } }],
    { returnDocument: 'after' },
  );
  if (claimed !== null) {
    const { floor, state, topics, watermark } = claimed;
    return { kind: 'claimed', topics, watermarkMs: watermark.getTime(), floorMs: floor.getTime(), state };
  }
  const isRegistered = (await groups.findOne({ _id: group }, { projection: { _id: 1 } })) !== null;
  return { kind: isRegistered ? 'held' : 'unregistered' };
}
