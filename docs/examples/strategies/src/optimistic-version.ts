import type { HandlersOf } from '@nightporter/worker';
import type { Db } from 'mongodb';
import type { Events } from './events.js';

export interface SummaryDocument {
  readonly _id: string;
  /** The aggregateVersion of the event that was taken up last. */
  readonly version: number;
  readonly receivedMinor: number;
}

/** The document carries the version that it is at, and takes up an event only if it is newer. */
export function optimisticVersion(database: Db): HandlersOf<Events> {
  const summaries = database.collection<SummaryDocument>('summaries');
  return {
    MoneyReceived: async ({ event, session }) => {
      const { aggregateId: _id, aggregateVersion: version, data } = event;
      const empty = { version: 0, receivedMinor: 0 };
      await summaries.updateOne({ _id }, { $setOnInsert: empty }, { session, upsert: true });
      const older = { _id, version: { $lt: version } };
      await summaries.updateOne(older, { $set: { version }, $inc: { receivedMinor: data.amountMinor } }, { session });
    },
  };
}
