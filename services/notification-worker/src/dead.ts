import { assertOperator, guarded, recordAction, runAction, type Operator } from '@nightporter/mongo';
import type { Document, Filter, MongoClient } from 'mongodb';
import { durableNotifications, notificationCollections, type NotificationDocument } from './documents.js';

export interface DeadNotifications {
  /** The oldest first, at most `limit`, behind the key `after`. */
  list(query: { readonly limit: number; readonly after?: string }): Promise<readonly NotificationDocument[]>;
  /**
   * Makes dead notifications due again, with fresh attempts and the same key; who did it and why stays with each, and is among the operators' actions. Returns their keys: those
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
  return {
    list: ({ limit, after }) =>
      guarded('listing dead notifications', () =>
        notifications.find(deadOnly(after === undefined ? {} : { _id: { $gt: after } }), oldest(limit)).toArray(),
      ),
    retry: async (keys, operator) => {
      assertOperator(operator);
      const filter = deadOnly(keys === 'all' ? {} : { _id: { $in: [...keys] } });
      return runAction(client, 'retrying dead notifications', async (session) => {
        const inside = client.db(database);
        const { notifications: documents } = notificationCollections(inside);
        const found = await documents.find(filter, { ...oldest(RETRY_MAX), projection: { _id: 1 }, session }).toArray();
        const retried = found.map(({ _id }) => _id);
        const [first] = retried;
        if (first === undefined) return [];
        await documents.updateMany({ _id: { $in: retried } }, [{ $set: dueAgain(operator) }], { session });
        const target = retried.length === 1 ? first : `${retried.length} notifications`;
        await recordAction(inside, session, { action: 'retry-notifications', target, ...operator });
        return retried;
      });
    },
  };
}

function deadOnly(filter: Filter<NotificationDocument>): Filter<NotificationDocument> {
  return { ...filter, state: 'dead' };
}

function oldest(limit: number): { readonly sort: { readonly _id: 1 }; readonly limit: number } {
  return { sort: { _id: 1 }, limit };
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
