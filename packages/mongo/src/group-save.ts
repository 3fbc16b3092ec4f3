import type { GroupChange } from '@nightporter/consumer';
import { Binary, ObjectId, type AnyBulkWriteOperation, type ClientSession, type Document } from 'mongodb';
import {
  asideId,
  placeId,
  positionId,
  type CopyDocument,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
  type SetAsideDocument,
} from './documents.js';
import type { GroupCollections } from './group-collections.js';
import { storedEvent } from './parked-documents.js';

type Of<Kind extends GroupChange['kind']> = Extract<GroupChange, { kind: Kind }>;

export interface SaveContext {
  readonly group: string;
  readonly receivedAt: Date;
  /** The database's clock: records of the inbox are inserted, since that is three times as fast as an upsert with `$$NOW`. */
  readonly now: Date;
  readonly inboxRetentionMs: number;
  /** Whether each event that is parked as dead leaves a copy that is to be sent. */
  readonly copiesDeadLetters: boolean;
}

/**
 * Writes the changes with one request per collection and kind. Positions go first: they are where concurrent verdicts meet, and
 * whoever loses shall lose early.
 */
export async function saveGroupChanges(
  collections: GroupCollections,
  session: ClientSession,
  context: SaveContext,
  changes: readonly GroupChange[],
): Promise<void> {
  const { positions, inbox, parked, aside, copies } = collections;
  const positionWrites = positionOperations(context, changes);
  if (positionWrites.length > 0) await positions.bulkWrite(positionWrites, { session });
  const settled = changes.flatMap((change) => (change.kind === 'settle' ? [inboxDocument(context, change)] : []));
  if (settled.length > 0) await inbox.insertMany(settled, { session });
  const repeats = duplicateOperations(context, changes);
  if (repeats.length > 0) await inbox.bulkWrite(repeats, { session });
  const parkedWrites = changes.flatMap((change) => parkedOperations(context, change));
  if (parkedWrites.length > 0) await parked.bulkWrite(parkedWrites, { session });
  const died = context.copiesDeadLetters ? changes.flatMap((change) => copyOf(context, change)) : [];
  if (died.length > 0) await copies.insertMany(died, { session });
  const asideWrites = changes.flatMap((change) =>
    change.kind === 'set-aside' ? [asideOperation(context, change)] : [],
  );
  if (asideWrites.length > 0) await aside.bulkWrite(asideWrites, { session });
}

/** One write per aggregate: the last position is the one that stands. */
function positionOperations(
  { group }: SaveContext,
  changes: readonly GroupChange[],
): AnyBulkWriteOperation<PositionDocument>[] {
  const last = new Map(
    changes.flatMap((change) => (change.kind === 'position' ? [[change.aggregate, change.position]] : [])),
  );
  return [...last].map(([aggregate, { version, startVersion, state }]) => ({
    updateOne: {
      filter: { _id: positionId(group, aggregate) },
      update: { $set: { group, aggregate, version, startVersion, state }, $inc: { revision: 1 } },
      upsert: true,
    },
  }));
}

function inboxDocument(context: SaveContext, { event, outcome, attempts }: Of<'settle'>): InboxDocument {
  const { group, receivedAt, now, inboxRetentionMs } = context;
  const { aggregate, digest, envelope, writtenDigest } = event;
  return {
    _id: placeId(group, aggregate, envelope.aggregateVersion),
    group,
    eventId: envelope.eventId,
    aggregate,
    version: envelope.aggregateVersion,
    outcome,
    digest: writtenDigest ?? digest,
    appliedDigest: digest,
    attempts,
    duplicates: 0,
    receivedAt,
    processedAt: now,
    expireAt: new Date(now.getTime() + inboxRetentionMs),
  };
}

function duplicateOperations(
  { group }: SaveContext,
  changes: readonly GroupChange[],
): AnyBulkWriteOperation<InboxDocument>[] {
  return changes.flatMap((change) =>
    change.kind === 'count-duplicate'
      ? [{ updateOne: { filter: { group, eventId: change.eventId }, update: { $inc: { duplicates: 1 } } } }]
      : [],
  );
}

function parkedOperations({ group }: SaveContext, change: GroupChange): AnyBulkWriteOperation<ParkedDocument>[] {
  switch (change.kind) {
    case 'park':
      return [
        {
          updateOne: { filter: { _id: idOf(group, change) }, update: [{ $set: parking(group, change) }], upsert: true },
        },
      ];
    case 'make-due':
      return [
        {
          updateOne: {
            filter: { _id: placeId(group, change.aggregate, change.version), state: { $ne: 'dead' } },
            update: [{ $set: MADE_DUE }],
          },
        },
      ];
    case 'unpark':
      return [{ deleteOne: { filter: { _id: placeId(group, change.aggregate, change.version) } } }];
    case 'settle':
    case 'position':
    case 'count-duplicate':
    case 'set-aside':
      return [];
  }
}

const REVISION_RAISED: Document = { $add: [{ $ifNull: ['$revision', 0] }, 1] };

/** Due at once, by the database's clock. */
export const MADE_DUE: Document = { state: 'retry', nextRetryAt: '$$NOW', revision: REVISION_RAISED };

function idOf(group: string, { event }: Of<'park'>): string {
  return placeId(group, event.aggregate, event.envelope.aggregateVersion);
}

/**
 * Fields of a parked message, as an update that keeps when it was parked and what is known of its failures, unless it takes the place of
 * another message.
 */
function parking(
  group: string,
  { event, state, attempts, retryInMs, failure, replaces, isSuspect }: Of<'park'>,
): Document {
  const hasFailed = failure !== null;
  const kept = (field: string, otherwise: unknown): unknown =>
    replaces === true ? otherwise : { $ifNull: [`$${field}`, otherwise] };
  return {
    group: { $literal: group },
    aggregate: { $literal: event.aggregate },
    version: event.envelope.aggregateVersion,
    sequenced: true,
    state,
    event: { $literal: storedEvent(event) },
    attempts,
    nextRetryAt: retryInMs === null ? null : { $add: ['$$NOW', retryInMs] },
    firstFailedAt: kept('firstFailedAt', hasFailed ? '$$NOW' : null),
    lastFailedAt: hasFailed ? '$$NOW' : kept('lastFailedAt', null),
    failure: hasFailed ? { $literal: failure } : kept('failure', null),
    parkedAt: kept('parkedAt', '$$NOW'),
    revision: REVISION_RAISED,
    isRunning: false,
    isSuspect: isSuspect ?? false,
  };
}

function copyOf({ group, now }: SaveContext, change: GroupChange): CopyDocument[] {
  if (change.kind !== 'park' || change.state !== 'dead') return [];
  const { attempts, event, failure } = change;
  const { aggregate, writtenDigest = null } = event;
  const dates = { diedAt: now, nextTryAt: now };
  return [
    {
      _id: new ObjectId().toHexString(),
      group,
      aggregate,
      event: storedEvent(event),
      writtenDigest,
      attempts,
      failure,
      ...dates,
    },
  ];
}

/** The first copy is kept whole; a repeat only counts. */
function asideOperation({ group }: SaveContext, change: Of<'set-aside'>): AnyBulkWriteOperation<SetAsideDocument> {
  const { id, topic, messageId, body, properties, failure } = change;
  const kept = (value: unknown, field: string): Document => ({ $ifNull: [`$${field}`, { $literal: value }] });
  const pairs = Object.entries(properties).map(([name, value]) => ({ name, value }));
  const update = {
    group: { $literal: group },
    state: 'aside',
    topic: kept(topic, 'topic'),
    messageId: kept(messageId, 'messageId'),
    body: kept(new Binary(body), 'body'),
    properties: kept(pairs, 'properties'),
    failure: kept(failure, 'failure'),
    count: { $add: [{ $ifNull: ['$count', 0] }, 1] },
    firstFailedAt: { $ifNull: ['$firstFailedAt', '$$NOW'] },
    lastFailedAt: '$$NOW',
  };
  return { updateOne: { filter: { _id: asideId(group, id) }, update: [{ $set: update }], upsert: true } };
}
