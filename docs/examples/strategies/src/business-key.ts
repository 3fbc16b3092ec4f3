import type { HandlersOf } from '@nightporter/worker';
import type { Db } from 'mongodb';
import type { Events } from './events.js';

export interface BookingDocument {
  /** The bank's number of the transaction: one booking for each, whoever tells of it, and however often. */
  readonly _id: string;
  readonly accountId: string;
  readonly amountMinor: number;
}

/** One document per business fact. An upsert, since a duplicate key error would end the transaction. */
export function businessKey(database: Db): HandlersOf<Events> {
  const bookings = database.collection<BookingDocument>('bookings');
  return {
    MoneyReceived: async ({ event, session }) => {
      const { amountMinor, transactionId } = event.data;
      const booking = { accountId: event.aggregateId, amountMinor };
      await bookings.updateOne({ _id: transactionId }, { $setOnInsert: booking }, { session, upsert: true });
    },
  };
}
