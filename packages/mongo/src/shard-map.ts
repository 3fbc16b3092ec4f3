import type { ShardMap, ShardMapOutcome, ShardMapStore } from '@nightporter/relay';
import type { Collection, Db } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import type { LeaseDocument, ShardMapDocument } from './documents.js';
import { faultOf, guarded } from './driver-errors.js';

const ID = 'shards';
const NOW = { $toLong: '$$NOW' };

interface Collections {
  readonly maps: Collection<ShardMapDocument>;
  readonly leases: Collection<LeaseDocument>;
}

/** The division of the slots that is served, in the one document of `relay_shard_map`. Dates are compared as numbers, see leases.ts. */
export function createShardMapStore(database: Db): ShardMapStore {
  const collections = {
    maps: database.collection<ShardMapDocument>(RELAY_COLLECTIONS.shardMap),
    leases: database.collection<LeaseDocument>(RELAY_COLLECTIONS.leases),
  };
  const place = `${database.databaseName}.${RELAY_COLLECTIONS.shardMap}`;
  return {
    agree: (request) => guarded(`agreeing on shards in ${place}`, () => agree(collections, request)),
    check: ({ map }) => guarded(`reading ${place}`, () => check(collections, map)),
  };
}

async function agree(
  collections: Collections,
  { map, settleMs }: { map: ShardMap; settleMs: number },
): Promise<ShardMapOutcome> {
  const { maps } = collections;
  const standing = await maps.findOne({ _id: ID });
  // After the document was read: a map that others agree on from here on has another revision.
  const served = await servedOutside(collections, map);
  if (served !== null) return served;
  if (standing === null) await create(maps, map);
  else if (!isSame(standing.shards, map)) await replace(maps, { revision: standing.revision, map, settleMs });
  else return { kind: 'agreed' };
  return await check(collections, map);
}

/** Somebody else may have been first; whoever reads the document then sees. */
async function create(maps: Collection<ShardMapDocument>, map: ShardMap): Promise<void> {
  const agreed = [{ $set: { shards: { $literal: map }, revision: 1, agreedAt: '$$NOW' } }];
  try {
    await maps.updateOne({ _id: ID, revision: { $exists: false } }, agreed, { upsert: true });
  } catch (error) {
    if (faultOf(error) !== 'duplicate-key') throw error;
  }
}

async function replace(
  maps: Collection<ShardMapDocument>,
  { revision, map, settleMs }: { revision: number; map: ShardMap; settleMs: number },
): Promise<void> {
  const isSettled = { $expr: { $lte: [{ $toLong: '$agreedAt' }, { $subtract: [NOW, settleMs] }] } };
  const agreed = [{ $set: { shards: { $literal: map }, revision: revision + 1, agreedAt: '$$NOW' } }];
  await maps.updateOne({ _id: ID, revision, ...isSettled }, agreed);
}

async function check(collections: Collections, map: ShardMap): Promise<ShardMapOutcome> {
  const served = await servedOutside(collections, map);
  if (served !== null) return served;
  const standing = await collections.maps.findOne({ _id: ID });
  if (standing !== null && isSame(standing.shards, map)) return { kind: 'agreed' };
  return { kind: 'other', reason: `agreed on are the shards ${standing?.shards.join(' ') ?? 'of nobody'}` };
}

/** Reads with majority what was written with majority: a lease that another relay was granted before is found. */
async function servedOutside({ leases }: Collections, map: ShardMap): Promise<ShardMapOutcome | null> {
  const isAlive = { $expr: { $gt: [{ $toLong: '$expiresAt' }, NOW] } };
  const lease = await leases.findOne({ _id: { $nin: [...map] }, ...isAlive });
  return lease === null ? null : { kind: 'other', reason: `shard ${lease._id} is held by ${lease.owner}` };
}

function isSame(standing: ShardMap, map: ShardMap): boolean {
  return standing.length === map.length && standing.every((shard, index) => shard === map[index]);
}
