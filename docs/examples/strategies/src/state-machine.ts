import type { HandlersOf } from '@nightporter/worker';
import type { Db } from 'mongodb';
import type { Events } from './events.js';

export interface DeliveryDocument {
  readonly _id: string;
  readonly state: 'ordered' | 'sent';
  /** How often the card was really put into an envelope. */
  readonly envelopes: number;
}

/** Each event is a transition from one state; where the document is elsewhere, nothing matches and nothing happens. */
export function stateMachine(database: Db): HandlersOf<Events> {
  const deliveries = database.collection<DeliveryDocument>('deliveries');
  return {
    CardOrdered: async ({ event, session }) => {
      const begun = { state: 'ordered', envelopes: 0 } as const;
      await deliveries.updateOne({ _id: event.aggregateId }, { $setOnInsert: begun }, { session, upsert: true });
    },
    CardSent: async ({ event, session }) => {
      const ordered = { _id: event.aggregateId, state: 'ordered' } as const;
      await deliveries.updateOne(ordered, { $set: { state: 'sent' }, $inc: { envelopes: 1 } }, { session });
    },
  };
}
