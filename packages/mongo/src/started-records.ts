import type { StartedRecords } from '@nightporter/consumer';
import type { Collection, Db } from 'mongodb';
import { CONSUMER_COLLECTIONS } from './collections.js';
import { startedId, type StartedDocument } from './documents.js';
import { guarded } from './driver-errors.js';

/** Records in `started`, one per loop of one process start; each goes a day after its last change. */
export function createStartedRecords(database: Db, group: string): StartedRecords {
  const started = database.collection<StartedDocument>(CONSUMER_COLLECTIONS.started);
  return {
    begin: (batch) =>
      guarded(`recording what is begun in ${started.namespace} of group ${group}`, () => begin(started, group, batch)),
  };
}

/** Written first and read then: of two that begin an event at once, at least one sees the other. */
async function begin(
  started: Collection<StartedDocument>,
  group: string,
  { owner, loop, events }: Parameters<StartedRecords['begin']>[0],
): ReturnType<StartedRecords['begin']> {
  const record = { group, owner, loop, events: [...events] };
  await started.updateOne(
    { _id: startedId(group, owner, loop) },
    { $set: record, $currentDate: { at: true } },
    { upsert: true },
  );
  const found = await started.find({ group, events: { $in: [...events] } }).toArray();
  const elsewhere = new Set(found.filter((other) => other.owner !== owner).flatMap((other) => other.events));
  return events.filter((event) => elsewhere.has(event));
}
