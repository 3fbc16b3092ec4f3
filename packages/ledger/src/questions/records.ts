import {
  OUTBOX_COLLECTIONS,
  durableDatabase,
  guarded,
  type GroupActionDocument,
  type OperatorActionDocument,
} from '@nightporter/mongo';
import { assertLimit } from '../requests.js';
import type { Deployment, Place } from './deployment.js';

export type ActionRecord = (OperatorActionDocument | GroupActionDocument) & { readonly database: string };

/** What operators did, in all databases, the newest first. Rejects with NP_ACTION_INVALID or NP_STORE_UNAVAILABLE. */
export async function operatorActions(
  { groups, producers, relay }: Deployment,
  limit: number,
): Promise<readonly ActionRecord[]> {
  assertLimit(limit);
  const places: readonly Place[] = [...producers, ...groups, ...(relay === null ? [] : [relay])];
  const seen = new Set<string>();
  const found: ActionRecord[] = [];
  for (const { client, database } of places) {
    const key = `${client.options.hosts.join()}/${database}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const actions = durableDatabase(client, database).collection<OperatorActionDocument | GroupActionDocument>(
      OUTBOX_COLLECTIONS.actions,
    );
    const newest = await guarded(`reading ${actions.namespace}`, () =>
      actions.find().sort({ at: -1 }).limit(limit).toArray(),
    );
    found.push(...newest.map((action) => ({ ...action, database })));
  }
  return found.sort((left, right) => right.at.getTime() - left.at.getTime()).slice(0, limit);
}
