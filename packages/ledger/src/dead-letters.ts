import { list, show } from './list.js';
import { editAndRetry, retry, skip } from './decisions.js';
import type { BulkResult, DeadLetters, DeadLettersOptions } from './contract.js';
import { LIMIT_MAX, assertDecision, assertLimit, invalid } from './requests.js';
import { dismiss, listSetAside } from './set-aside.js';
import { worldOf, type World } from './world.js';

/**
 * Rejects with NP_ACTION_INVALID for a request that is incomplete or out of range, with NP_STORE_UNAVAILABLE when the database failed
 * or the outcome is unknown: then look again; a repeat does no harm, since it counts for one revision only.
 */
export function createDeadLetters(options: DeadLettersOptions): DeadLetters {
  const world = worldOf(options);
  const { group, collections } = world;
  return {
    list: (filter = {}, limit = LIMIT_MAX) => list(world, filter, limit),
    show: (eventId) => show(world, eventId),
    retry: (target, decision) => retry(world, target, { decision, bulk: null }),
    editAndRetry: (target, edit) => editAndRetry(world, target, edit),
    skip: (target, decision) => skip(world, target, { decision, bulk: null }),
    planBulk: (request) => chosen(world, request),
    bulk: (action, request) => inBulk(world, action, request),
    listSetAside: (limit = LIMIT_MAX) => listSetAside(world, limit),
    dismiss: (target, decision) => dismiss(world, target, decision),
    async actions(limit = LIMIT_MAX) {
      assertLimit(limit);
      return collections.actions.find({ group }).sort({ at: -1 }).limit(limit).toArray();
    },
  };
}

/** One transaction for each: what one of them meets does not undo the others. */
async function inBulk(
  world: World,
  action: Parameters<DeadLetters['bulk']>[0],
  { by, reason, ...wanted }: Parameters<DeadLetters['bulk']>[1],
): Promise<BulkResult> {
  const decision = { by, reason };
  assertDecision(decision);
  const bulk = globalThis.crypto.randomUUID();
  const act = action === 'retry' ? retry : skip;
  const results: BulkResult['results'][number][] = [];
  for (const { eventId, revision } of await chosen(world, wanted)) {
    results.push({ eventId, result: await act(world, { eventId, revision }, { decision, bulk }) });
  }
  return { bulk, results };
}

/** One choice for plan and act, so that a dry run cannot show other dead letters than those that are acted upon. */
async function chosen(
  world: World,
  { filter, limit = LIMIT_MAX }: Parameters<DeadLetters['planBulk']>[0],
): ReturnType<DeadLetters['planBulk']> {
  if (Object.values(filter).every((value) => value === undefined)) {
    throw invalid('filter is empty; accepted: an eventType, a code, a reason, an aggregate, or several of them.');
  }
  return list(world, filter, limit);
}
