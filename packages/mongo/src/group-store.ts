import type { GroupStore, GroupTransaction } from '@nightporter/consumer';
import type { ClientSession, MongoClient } from 'mongodb';
import type { DatabaseClock } from './database-clock.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';
import { loadGroupState } from './group-load.js';
import { saveGroupChanges } from './group-save.js';
import { runTransaction, type Attempt } from './transactions.js';

export interface GroupStoreOptions {
  readonly client: MongoClient;
  readonly group: string;
  readonly collections: GroupCollections;
  readonly clock: DatabaseClock;
  readonly inboxRetentionMs: number;
  readonly copiesDeadLetters: boolean;
}

export function createGroupStore(options: GroupStoreOptions): GroupStore<ClientSession> {
  const { client, clock, group } = options;
  const operation = `a transaction of group ${group}`;
  return {
    group,
    async transact(work) {
      const receivedAt = await guarded(`asking the database of group ${group} for the time`, () => clock.estimate());
      return runTransaction(client, operation, (attempt) => work(groupTransaction(options, attempt, receivedAt)));
    },
  };
}

function groupTransaction(
  { group, collections, clock, inboxRetentionMs, copiesDeadLetters }: GroupStoreOptions,
  { session, own }: Attempt,
  receivedAt: Date,
): GroupTransaction<ClientSession> {
  return {
    session,
    load: (events) =>
      own(`loading ${events.length} events of group ${group}`, () =>
        loadGroupState(collections, { group, session, events, nowMs: receivedAt.getTime() }),
      ),
    save: (changes) =>
      own(`saving ${changes.length} changes of group ${group}`, async () => {
        const now = await clock.estimate();
        const context = { group, receivedAt, now, inboxRetentionMs, copiesDeadLetters };
        await saveGroupChanges(collections, session, context, changes);
      }),
  };
}
