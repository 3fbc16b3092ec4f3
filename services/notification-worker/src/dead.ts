import { assertOperator, guarded, type Operator } from '@nightporter/mongo';
import type { Document, Filter, MongoClient } from 'mongodb';
import { durableNotifications, type NotificationDocument } from './documents.js';

export interface DeadNotifications {
  /** The oldest first, at most `limit`, behind the key `after`. */
  list(query: { readonly limit: number; readonly after?: string }): Promise<readonly NotificationDocument[]>;
  /**
   * Makes dead notifications due again, with fresh attempts and the same key; who did it and why stays with each. Returns their keys: those
   * of `keys` that are dead, or the oldest 500 of all. Rejects with NP_ACTION_INVALID where somebody does not say who he is, or why.
   */
  retry(keys: readonly string[] | 'all', operator: Operator): Promise<readonly string[]>;
}

const RETRY_MAX = 500;

/** What could not be sent, for an operator to see and to have sent again once it is mended. */
export function createDeadNotifications({
  client,
  database,
}: {
  client: MongoClient;
  database: string;
}): DeadNotifications {
  const { notifications } = durableNotifications(client, database);
  const find = (filter: Filter<NotificationDocument>, limit: number): Promise<NotificationDocument[]> =>
    guarded('listing dead notifications', () =>
      notifications
        .find({ ...filter, state: 'dead' })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    );
  return {
    list: ({ limit, after }) => find(after === undefined ? {} : { _id: { $gt: after } }, limit),
    retry: async (keys, operator) => {
      assertOperator(operator);
      const found = await find(keys === 'all' ? {} : { _id: { $in: [...keys] } }, RETRY_MAX);
      const retried = found.map(({ _id }) => _id);
      await guarded('retrying dead notifications', () =>
        notifications.updateMany({ _id: { $in: retried }, state: 'dead' }, [{ $set: dueAgain(operator) }]),
      );
      return retried;
    },
  };
}

function dueAgain({ by, reason }: Operator): Document {
  const retry = { by: { $literal: by }, reason: { $literal: reason }, at: '$$NOW' };
  return {
    state: 'pending',
    attempts: 0,
    nextAttemptAt: '$$NOW',
    revision: { $add: ['$revision', 1] },
    retries: { $concatArrays: [{ $ifNull: ['$retries', []] }, [retry]] },
  };
}
