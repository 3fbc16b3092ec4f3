import type { HandlersOf } from '@nightporter/worker';
import type { Db } from 'mongodb';
import type { Events } from './events.js';

export interface BalanceDocument {
  readonly _id: string;
  readonly balanceMinor: number;
}

/** Adds up. Nothing in the document tells what is in it already: that the inbox commits with it is all that keeps it right. */
export function inbox(database: Db): HandlersOf<Events> {
  const balances = database.collection<BalanceDocument>('balances');
  return {
    MoneyReceived: async ({ event, session }) => {
      const { amountMinor } = event.data;
      await balances.updateOne(
        { _id: event.aggregateId },
        { $inc: { balanceMinor: amountMinor } },
        { session, upsert: true },
      );
    },
  };
}
