import type { RepairLog } from '@nightporter/relay';
import { ObjectId, type Db } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import type { RepairDocument } from './documents.js';
import { guarded } from './driver-errors.js';

/** Repairs in `relay_repairs`, dated by the database's clock. */
export function createRepairLog(database: Db): RepairLog {
  const repairs = database.collection<RepairDocument>(RELAY_COLLECTIONS.repairs);
  return {
    record: ({ shard, epoch, owner, reason, rows }) =>
      guarded(`recording a repair in ${database.databaseName}.${RELAY_COLLECTIONS.repairs}`, async () => {
        const _id = new ObjectId();
        const repair = { shard, epoch, owner, reason, rows };
        await repairs.updateOne({ _id }, { $set: repair, $currentDate: { at: true } }, { upsert: true });
      }),
  };
}
