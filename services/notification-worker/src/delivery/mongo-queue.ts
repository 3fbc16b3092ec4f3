import { createDatabaseClock, guarded, type DatabaseClock } from '@nightporter/mongo';
import type { Document, Filter, MongoClient } from 'mongodb';
import { durableNotifications, type NotificationCollections, type NotificationDocument } from '../documents.js';
import type { ClaimedNotification, DeliveryQueue, DeliveryVerdict, QueueFigures } from './ports.js';

const REASON_CHARACTERS_MAX = 2_000;

type Notifications = NotificationCollections['notifications'];

/** {@link DeliveryQueue} on MongoDB. */
export function createDeliveryQueue({ client, database }: { client: MongoClient; database: string }): DeliveryQueue {
  const { notifications } = durableNotifications(client, database);
  const clock = createDatabaseClock(client);
  const place = notifications.namespace;
  return {
    claimDue: (request) => guarded(`claiming in ${place}`, () => claimDue(notifications, clock, request)),
    settle: (claimed, verdict) =>
      guarded(`settling ${claimed._id} in ${place}`, async () => {
        await notifications.updateOne(conditionOf(claimed, verdict), [{ $set: changeOf(claimed, verdict) }]);
      }),
    measure: (channels) => guarded(`counting in ${place}`, () => measure(notifications, clock, channels)),
  };
}

/** The time is asked for first and compared as a constant, which an index can serve and every server does right. */
async function claimDue(
  notifications: Notifications,
  clock: DatabaseClock,
  { channels, limit, claimMs }: Parameters<DeliveryQueue['claimDue']>[0],
): Promise<ClaimedNotification[]> {
  const due: Filter<NotificationDocument> = {
    state: 'pending',
    nextAttemptAt: { $lte: await clock.read() },
    channel: { $in: [...channels] },
  };
  const candidates = await notifications.find(due).sort({ nextAttemptAt: 1, _id: 1 }).limit(limit).toArray();
  const claims = await Promise.allSettled(candidates.map((candidate) => claim(notifications, candidate, claimMs)));
  const claimed = claims.flatMap((result) =>
    result.status === 'fulfilled' && result.value !== null ? [result.value] : [],
  );
  // What was claimed is handed out even if another claim failed: thrown away, it would have been counted without being sent.
  const failure = claims.find((result) => result.status === 'rejected');
  if (claimed.length === 0 && failure !== undefined) throw failure.reason;
  return claimed;
}

/** Null when somebody was faster. */
async function claim(
  notifications: Notifications,
  candidate: NotificationDocument,
  claimMs: number,
): Promise<ClaimedNotification | null> {
  const attempts = candidate.attempts + 1;
  const revision = candidate.revision + 1;
  const { modifiedCount } = await notifications.updateOne(
    { _id: candidate._id, state: 'pending', revision: candidate.revision },
    [{ $set: { attempts, revision, nextAttemptAt: { $add: ['$$NOW', claimMs] } } }],
  );
  return modifiedCount === 1 ? { ...candidate, attempts, revision } : null;
}

function conditionOf({ _id, revision }: ClaimedNotification, verdict: DeliveryVerdict): Filter<NotificationDocument> {
  // Whoever has claimed it meanwhile, or called it dead: it has been sent.
  if (verdict.kind === 'sent') return { _id, state: { $ne: 'sent' } };
  return { _id, revision, state: 'pending' };
}

/** Literals, since what a receiver says may begin with a `$`. */
function changeOf({ attempts }: ClaimedNotification, verdict: DeliveryVerdict): Document {
  const revision = { $add: ['$revision', 1] };
  switch (verdict.kind) {
    case 'sent':
      return { state: 'sent', sentAt: '$$NOW', receipt: { $literal: shortened(verdict.receipt) }, revision };
    case 'retry':
      return {
        nextAttemptAt: { $add: ['$$NOW', verdict.delayMs] },
        lastFailure: failureOf('transient', verdict.reason),
        revision,
      };
    case 'dead':
      return { state: 'dead', lastFailure: failureOf(verdict.because, verdict.reason), revision };
    case 'given-back':
      return { attempts: attempts - 1, nextAttemptAt: '$$NOW', revision };
  }
}

function failureOf(kind: 'transient' | 'permanent', reason: string): Document {
  return { kind, message: { $literal: shortened(reason) }, at: '$$NOW' };
}

function shortened(text: string | null): string | null {
  return text === null ? null : text.slice(0, REASON_CHARACTERS_MAX);
}

async function measure(
  notifications: Notifications,
  clock: DatabaseClock,
  channels: Parameters<DeliveryQueue['measure']>[0],
): Promise<QueueFigures> {
  const pending = await notifications.countDocuments({ state: 'pending' });
  const unserved = await notifications.countDocuments({ state: 'pending', channel: { $nin: [...channels] } });
  const dead = await notifications.countDocuments({ state: 'dead' });
  const [oldest] = await notifications.find({ state: 'pending' }).sort({ occurredAt: 1 }).limit(1).toArray();
  const oldestPendingMs =
    oldest === undefined ? null : Math.max(0, (await clock.read()).getTime() - Date.parse(oldest.occurredAt));
  return { pending, unserved, dead, oldestPendingMs };
}
