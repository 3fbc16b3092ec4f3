import type { GroupActionDocument } from '@nightporter/mongo';
import { ObjectId, type ClientSession, type Collection } from 'mongodb';
import type { Decision } from './requests.js';

/** What was decided upon. */
export type ActionSubject = Pick<
  GroupActionDocument,
  'group' | 'target' | 'eventId' | 'eventType' | 'aggregate' | 'version' | 'before'
>;

export type Action = ActionSubject &
  Pick<GroupActionDocument, 'action' | 'bulk'> &
  Partial<Pick<GroupActionDocument, 'edit'>> & { readonly decision: Decision };

/** Writes the record of an action in the action's own transaction, with the database's time. */
export async function recordAction(
  actions: Collection<GroupActionDocument>,
  { decision: { by, reason }, edit = null, ...what }: Action,
  session: ClientSession,
): Promise<void> {
  const record = { ...what, by, reason, edit };
  const literals = Object.fromEntries(Object.entries(record).map(([name, value]) => [name, { $literal: value }]));
  await actions.updateOne({ _id: new ObjectId() }, [{ $set: { ...literals, at: '$$NOW' } }], { session, upsert: true });
}

/** Who and why, for an update by pipeline. */
export function literals({ by, reason }: Decision): Record<string, unknown> {
  return { by: { $literal: by }, reason: { $literal: reason } };
}
