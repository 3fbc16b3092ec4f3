import { recordAction, literals } from './actions.js';
import type { DismissResult } from './contract.js';
import { setAsideOf, type SetAsideMessage } from './documents.js';
import { assertDecision, assertLimit, type Decision } from './requests.js';
import { transact, type World } from './world.js';

export async function listSetAside(
  { group, collections: { aside } }: World,
  limit: number,
): Promise<readonly SetAsideMessage[]> {
  assertLimit(limit);
  const found = await aside.find({ group, state: 'aside' }).sort({ firstFailedAt: 1 }).limit(limit).toArray();
  return found.map(setAsideOf);
}

/** Holds only while the message has come as often as the operator saw. */
export async function dismiss(
  world: World,
  { id, count }: { readonly id: string; readonly count: number },
  decision: Decision,
): Promise<DismissResult> {
  assertDecision(decision);
  const { group, collections } = world;
  const { actions, aside } = collections;
  return transact(world, async ({ session }) => {
    const document = await aside.findOne({ _id: id, group, state: 'aside' }, { session });
    if (document === null) return { kind: 'gone' };
    if (document.count !== count) return { kind: 'changed', count: document.count };
    await aside.updateOne(
      { _id: id, state: 'aside', count },
      [{ $set: { state: 'dismissed', dismissal: { ...literals(decision), at: '$$NOW' } } }],
      { session },
    );
    const before = { attempts: 0, revision: count, failure: document.failure };
    const nothing = { eventId: null, eventType: null, aggregate: null, version: null };
    await recordAction(
      actions,
      { group, target: id, ...nothing, before, action: 'dismiss', decision, bulk: null },
      session,
    );
    return { kind: 'done' };
  });
}
