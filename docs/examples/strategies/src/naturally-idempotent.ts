import type { HandlersOf } from '@nightporter/worker';
import type { Db } from 'mongodb';
import type { Events } from './events.js';

export interface ContactDocument {
  readonly _id: string;
  readonly email: string;
  readonly everUsed: readonly string[];
}

/** Says what is, not what changes: a second time leaves what the first has left. */
export function naturallyIdempotent(database: Db): HandlersOf<Events> {
  const contacts = database.collection<ContactDocument>('contacts');
  return {
    ContactChanged: async ({ event, session }) => {
      const { email } = event.data;
      const update = { $set: { email }, $addToSet: { everUsed: email } };
      await contacts.updateOne({ _id: event.aggregateId }, update, { session, upsert: true });
    },
  };
}
