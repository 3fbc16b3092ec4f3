import { parkedEvent, type ParkedDocument } from '@nightporter/mongo';
import type { ClientSession } from 'mongodb';
import { literals, recordAction, type ActionSubject } from './actions.js';
import type { ActionResult, SkipResult, Target } from './contract.js';
import type { LedgerCollections } from './documents.js';
import { editedEvent } from './edit.js';
import { assertDecision, type Decision } from './requests.js';
import { decideSkip, type GroupTransaction } from './skip.js';
import { transact, type World } from './world.js';

/** A decision, and the bulk request that it belongs to. */
export interface Request {
  readonly decision: Decision;
  readonly bulk: string | null;
}

export async function retry(world: World, target: Target, { decision, bulk }: Request): Promise<ActionResult> {
  assertDecision(decision);
  const { collections } = world;
  return upon(world, target, async ({ document, transaction: { session } }) => {
    await makeDue(collections, document, {}, session);
    await recordAction(collections.actions, { ...subjectOf(document), action: 'retry', decision, bulk }, session);
    return { kind: 'done' };
  });
}

export async function editAndRetry(
  world: World,
  target: Target,
  { data, ...decision }: Decision & { readonly data: unknown },
): Promise<ActionResult> {
  assertDecision(decision);
  const { collections, read } = world;
  return upon(world, target, async ({ document, transaction: { session } }) => {
    const event = editedEvent(document, data, read);
    const original = document.original ?? document.event;
    await makeDue(collections, document, { event, original, edit: decision }, session);
    const edit = { digest: original.digest, appliedDigest: event.digest };
    const subject = subjectOf(document);
    await recordAction(
      collections.actions,
      { ...subject, action: 'edit-and-retry', decision, bulk: null, edit },
      session,
    );
    return { kind: 'done' };
  });
}

export async function skip(world: World, target: Target, { decision, bulk }: Request): Promise<SkipResult> {
  assertDecision(decision);
  const { actions } = world.collections;
  return upon(world, target, async ({ document, transaction }): Promise<SkipResult> => {
    const { event, attempts } = parkedEvent(document);
    const decided = decideSkip(await transaction.load([event]), { event, attempts });
    if (decided.kind === 'not-next') return decided;
    const { session } = transaction;
    await recordAction(actions, { ...subjectOf(document), action: 'skip', decision, bulk }, session);
    await transaction.save(decided.changes);
    return { kind: 'done', verdict: decided.verdict };
  });
}

interface DeadRow {
  readonly transaction: GroupTransaction;
  readonly document: ParkedDocument;
}

type Missed = Exclude<ActionResult, { kind: 'done' }>;

/** Acts upon a row in one transaction, if it is still dead as the operator saw it. */
function upon<Result>(world: World, target: Target, act: (row: DeadRow) => Promise<Result>): Promise<Result | Missed> {
  return transact(world, async (transaction) => {
    const found = await findDead(world, target, transaction.session);
    return found.kind === 'found' ? act({ transaction, document: found.document }) : found;
  });
}

async function findDead(
  { group, collections: { parked } }: World,
  { eventId, revision }: Target,
  session: ClientSession,
): Promise<{ readonly kind: 'found'; readonly document: ParkedDocument } | Missed> {
  const document = await parked.findOne({ group, sequenced: true, 'event.eventId': eventId }, { session });
  if (document === null) return { kind: 'gone' };
  if (document.state === 'dead' && document.revision === revision) return { kind: 'found', document };
  return { kind: 'changed', state: document.state, revision: document.revision };
}

/** Due at once, with all of its attempts. The position stays blocked by it, as it was. */
async function makeDue(
  { parked }: LedgerCollections,
  { _id, revision }: ParkedDocument,
  edit: Pick<Partial<ParkedDocument>, 'event' | 'original'> & { readonly edit?: Decision },
  session: ClientSession,
): Promise<void> {
  const { event, original, edit: by } = edit;
  const edited =
    by === undefined
      ? {}
      : { event: { $literal: event }, original: { $literal: original }, edit: { ...literals(by), at: '$$NOW' } };
  await parked.updateOne(
    { _id, revision, state: 'dead' },
    [
      {
        $set: {
          state: 'retry',
          attempts: 0,
          nextRetryAt: '$$NOW',
          revision: revision + 1,
          ...edited,
        },
      },
    ],
    { session },
  );
}

function subjectOf({
  _id,
  group,
  event,
  aggregate,
  version,
  attempts,
  revision,
  failure,
}: ParkedDocument): ActionSubject {
  const { eventId, eventType } = event;
  return { group, target: _id, eventId, eventType, aggregate, version, before: { attempts, revision, failure } };
}
