import { NightporterError } from '@nightporter/protocol';
import type { LeaseOutcome, LeaseStore } from '@nightporter/relay';
import type { Collection, Db, Document } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import type { LeaseDocument } from './documents.js';
import { faultOf, guarded } from './driver-errors.js';

/** Both sides as numbers: SecantusDB compares a stored date with `$$NOW` wrongly. */
const EXPIRED = { $lte: [{ $toLong: '$expiresAt' }, { $toLong: '$$NOW' }] };

/** Leases in `relay_leases`, or another collection: one atomic update takes or renews, or finds nothing that it may. Other fields of the document stay. */
export function createLeaseStore(database: Db, collection: string = RELAY_COLLECTIONS.leases): LeaseStore {
  const leases = database.collection<LeaseDocument>(collection);
  const place = `${database.databaseName}.${collection}`;
  return {
    acquire: (request) => guarded(`acquiring ${request.shard} in ${place}`, () => acquire(leases, request)),
    release: ({ shard, owner, epoch }) =>
      guarded(`releasing ${shard} in ${place}`, async () => {
        await leases.updateOne({ _id: shard, owner, epoch }, [{ $set: { expiresAt: '$$NOW' } }]);
      }),
  };
}

/** A lease that is refused and then not found was deleted in between: it is free. */
const ATTEMPTS_MAX = 3;

async function acquire(
  leases: Collection<LeaseDocument>,
  request: Parameters<LeaseStore['acquire']>[0],
): Promise<LeaseOutcome> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const held = await take(leases, request);
    if (held !== null) return { kind: 'held', epoch: held.epoch, takenOver: held.takenOver };
    const holder = await leases.findOne({ _id: request.shard });
    if (holder !== null) return { kind: 'refused', owner: holder.owner };
  }
  throw new NightporterError('NP_STORE_UNAVAILABLE', `The lease ${request.shard} keeps being deleted by somebody.`);
}

/** Null when somebody else holds it. */
async function take(
  leases: Collection<LeaseDocument>,
  request: Parameters<LeaseStore['acquire']>[0],
): Promise<LeaseDocument | null> {
  const { shard, owner } = request;
  const free = { _id: shard, $or: [{ owner }, { $expr: EXPIRED }] };
  return (
    (await leases.findOneAndUpdate(free, leaseUpdate(request), { returnDocument: 'after' })) ??
    (await create(leases, request))
  );
}

/** A statement of its own, since MongoDB refuses $expr together with an upsert. Null when there is a lease after all. */
async function create(
  leases: Collection<LeaseDocument>,
  request: Parameters<LeaseStore['acquire']>[0],
): Promise<LeaseDocument | null> {
  try {
    const without = { _id: request.shard, owner: { $exists: false } };
    return await leases.findOneAndUpdate(without, leaseUpdate(request), { upsert: true, returnDocument: 'after' });
  } catch (error) {
    if (faultOf(error) === 'duplicate-key') return null;
    throw error;
  }
}

function leaseUpdate({ owner, durationMs }: Parameters<LeaseStore['acquire']>[0]): Document[] {
  const isOurs = { $and: [{ $eq: ['$owner', { $literal: owner }] }, { $not: [EXPIRED] }] };
  const lease = {
    epoch: { $add: [{ $ifNull: ['$epoch', 0] }, { $cond: [isOurs, 0, 1] }] },
    takenOver: { $not: [isOurs] },
    owner: { $literal: owner },
    expiresAt: { $add: ['$$NOW', durationMs] },
  };
  return [{ $set: lease }];
}
