import type { InstanceRegistry } from '@nightporter/relay';
import type { Db } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import type { InstanceDocument } from './documents.js';
import { guarded } from './driver-errors.js';

/** How long the document of an instance that died is kept: it tells an operator who was there. */
const KEPT_MS = 3_600_000;

/** Living instances in `relay_instances`. Both sides of each comparison as numbers, see leases.ts. */
export function createInstanceRegistry(database: Db): InstanceRegistry {
  const instances = database.collection<InstanceDocument>(RELAY_COLLECTIONS.instances);
  const place = `${database.databaseName}.${RELAY_COLLECTIONS.instances}`;
  const now = { $toLong: '$$NOW' };
  const expiresAt = { $toLong: '$expiresAt' };
  return {
    announce: ({ instance, map, durationMs }) =>
      guarded(`announcing ${instance} in ${place}`, async () => {
        const life = [{ $set: { shards: { $literal: map }, expiresAt: { $add: ['$$NOW', durationMs] } } }];
        const { upsertedCount } = await instances.updateOne({ _id: instance }, life, { upsert: true });
        // Whoever joins clears away who has long left.
        const gone = { $expr: { $lte: [expiresAt, { $subtract: [now, KEPT_MS] }] } };
        if (upsertedCount > 0) await instances.deleteMany(gone);
        const isAlive = { $expr: { $gt: [expiresAt, now] } };
        const living = await instances.find({ shards: [...map], ...isAlive }, { projection: { _id: 1 } }).toArray();
        return living.map(({ _id }) => _id);
      }),
    leave: ({ instance }) =>
      guarded(`leaving ${place} as ${instance}`, async () => {
        await instances.deleteOne({ _id: instance });
      }),
  };
}
