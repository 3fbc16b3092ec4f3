import { createGroupStores, type GroupStores } from '@nightporter/mongo';
import { isNightporterError } from '@nightporter/protocol';
import type { DeadLettersOptions } from './contract.js';
import { ledgerCollections, type LedgerCollections } from './documents.js';
import type { EventCheck } from './edit.js';
import type { GroupTransaction } from './skip.js';

/** What the actions of one group share. */
export interface World {
  readonly group: string;
  readonly collections: LedgerCollections;
  readonly store: GroupStores['store'];
  readonly read: EventCheck | undefined;
}

export function worldOf({ client, database, group, inboxRetentionMs, read }: DeadLettersOptions): World {
  const retention = inboxRetentionMs === undefined ? {} : { inboxRetentionMs };
  const { store } = createGroupStores({ client, database, group, ...retention });
  return { group, collections: ledgerCollections(client, database), store, read };
}

/** Conflicts in a row after which an action gives up. */
const ATTEMPTS_MAX = 10;

/** Runs `work` in one transaction of the group, and anew when a concurrent one won. */
export async function transact<Result>(
  { store }: World,
  work: (transaction: GroupTransaction) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await store.transact(work);
    } catch (error) {
      if (!isNightporterError(error, 'NP_TRANSACTION_CONFLICT') || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
