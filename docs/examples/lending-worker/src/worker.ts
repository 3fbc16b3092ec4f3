import { optionalList, setting, text } from '@nightporter/runtime';
import { defineConsumer } from '@nightporter/worker';
import type { Db } from 'mongodb';
import { libraryCatalogue } from './events.js';

export interface MemberDocument {
  readonly _id: string;
  /** How many books the member has borrowed so far. */
  readonly loans: number;
}

const membersOf = (database: Db) => database.collection<MemberDocument>('members');

export const lendingWorker = defineConsumer({
  name: 'lending-worker',
  description: 'Counts the books that each member has borrowed.',
  port: 3020,
  database: 'lending',
  group: 'lending',
  source: 'lending',
  catalogue: libraryCatalogue,
  subscriptions: [{ producer: 'library', topic: 'books-events' }],
  settings: {
    members: setting({
      name: 'MEMBERS',
      kind: optionalList(text({ charactersMax: 100 }), { itemsMax: 1_000 }),
      default: '',
      description: 'Members to register at the start; those that are known keep their count.',
    }),
  },
  prepare: async ({ config, database }) => {
    await membersOf(database).createIndex({ loans: 1 });
    for (const _id of config.members) {
      await membersOf(database).updateOne({ _id }, { $setOnInsert: { loans: 0 } }, { upsert: true });
    }
  },
  handlers: ({ database }) => ({
    BookLent: async ({ event, session }) => {
      const { memberId } = event.data;
      const { matchedCount } = await membersOf(database).updateOne(
        { _id: memberId },
        { $inc: { loans: 1 } },
        { session },
      );
      if (matchedCount === 0) throw new Error(`there is no member ${memberId}`);
    },
  }),
});
