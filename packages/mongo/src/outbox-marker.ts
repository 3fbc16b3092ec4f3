import type { OutboxDocument } from '@nightporter/contracts';
import type { EventId, Namespace } from '@nightporter/protocol';
import type { Mark, MarkOutcome, OutboxMarker } from '@nightporter/relay';
import type { AnyBulkWriteOperation, Document, Filter, MongoClient } from 'mongodb';
import { groupedBy, partsOf } from './batches.js';
import { guarded } from './driver-errors.js';
import { outboxCollection } from './outbox-collection.js';

type Published = Extract<Mark, { kind: 'published' }>;
type Conditional = Exclude<Mark, Published>;

/** Rows in one statement: on SecantusDB more are slower again. */
const MARKS_MAX = 50;

/** Marks in the outboxes that the rows came from, many in one statement. */
export function createOutboxMarker(client: MongoClient): OutboxMarker {
  return {
    mark: (marks) =>
      guarded(`marking ${marks.length} outbox rows`, async () => {
        const outcomes = new Map<Mark, MarkOutcome>();
        for (const [namespace, ofNamespace] of groupedBy(marks, (mark) => mark.namespace)) {
          const published = ofNamespace.filter((mark) => mark.kind === 'published');
          const conditional = ofNamespace.filter((mark) => mark.kind !== 'published');
          for (const part of partsOf(published, MARKS_MAX)) await markPublished(client, namespace, part, outcomes);
          for (const part of partsOf(conditional, MARKS_MAX)) await markIfUnchanged(client, namespace, part, outcomes);
        }
        return marks.map((mark) => outcomes.get(mark) ?? { kind: 'missing' });
      }),
  };
}

async function markPublished(
  client: MongoClient,
  namespace: Namespace,
  marks: readonly Published[],
  outcomes: Map<Mark, MarkOutcome>,
): Promise<void> {
  const ids = marks.map((mark) => mark.eventId);
  const { matchedCount } = await outboxCollection(client, namespace).updateMany(
    { _id: { $in: ids }, status: { $ne: 'PUBLISHED' } },
    publishedUpdate(marks),
  );
  if (matchedCount === marks.length) for (const mark of marks) outcomes.set(mark, { kind: 'done' });
  else await readOutcomes(client, namespace, marks, outcomes);
}

/** One statement with a publication per row: the position of its id in one list is that of its publication in the other. */
function publishedUpdate(marks: readonly Published[]): Document[] {
  const ids = marks.map((mark) => mark.eventId);
  const publications = marks.map(({ messageId, topic, relay, epoch, form }) => ({
    messageId,
    topic,
    relay,
    epoch,
    form,
  }));
  const position = { $indexOfArray: [{ $literal: ids }, '$_id'] };
  const sinceCaptureMs = { $arrayElemAt: [{ $literal: marks.map((mark) => mark.sinceCaptureMs) }, position] };
  const set = {
    status: 'PUBLISHED',
    publishedAt: { $ifNull: ['$publishedAt', '$$NOW'] },
    updatedAt: '$$NOW',
    nextRetryAt: null,
    revision: { $add: ['$revision', 1] },
    publication: {
      $mergeObjects: [
        { $arrayElemAt: [{ $literal: publications }, position] },
        { capturedAt: { $subtract: ['$$NOW', sinceCaptureMs] } },
      ],
    },
  };
  return [{ $set: set }, { $unset: 'unsettled' }];
}

async function markIfUnchanged(
  client: MongoClient,
  namespace: Namespace,
  marks: readonly Conditional[],
  outcomes: Map<Mark, MarkOutcome>,
): Promise<void> {
  const operations = marks.map((mark): AnyBulkWriteOperation<OutboxDocument> => {
    const { eventId, revision } = mark;
    const filter: Filter<OutboxDocument> = { _id: eventId, revision, status: { $ne: 'PUBLISHED' } };
    return { updateOne: { filter, update: conditionalUpdate(mark) } };
  });
  const { matchedCount } = await outboxCollection(client, namespace).bulkWrite(operations, { ordered: false });
  if (matchedCount === marks.length) for (const mark of marks) outcomes.set(mark, { kind: 'done' });
  else await readOutcomes(client, namespace, marks, outcomes);
}

function conditionalUpdate(mark: Conditional): Document[] {
  const changed = { updatedAt: '$$NOW', revision: { $add: ['$revision', 1] } };
  if (mark.kind === 'unanswered') return [{ $set: { ...changed, unanswered: true } }];
  if (mark.kind === 'claimed') {
    const { relay, epoch } = mark;
    return [{ $set: { ...changed, status: 'PROCESSING', nextRetryAt: null, claim: { $literal: { relay, epoch } } } }];
  }
  const { status, retryCount, retryInMs, error } = mark;
  const nextRetryAt = status === 'DEAD' ? null : { $add: ['$$NOW', retryInMs] };
  return [{ $set: { ...changed, status, retryCount, nextRetryAt, lastError: { $literal: error } } }];
}

type Standing = Pick<OutboxDocument, '_id' | 'status' | 'revision' | 'retryCount' | 'unanswered' | 'claim'>;

/** A statement tells how many rows it found, not which: this tells. */
async function readOutcomes(
  client: MongoClient,
  namespace: Namespace,
  marks: readonly Mark[],
  outcomes: Map<Mark, MarkOutcome>,
): Promise<void> {
  const ids = marks.map((mark) => mark.eventId);
  const projection = { status: 1, revision: 1, retryCount: 1, unanswered: 1, claim: 1 };
  const found = await outboxCollection(client, namespace)
    .find<Standing>({ _id: { $in: ids } }, { projection })
    .toArray();
  const standing = new Map<EventId, Standing>(found.map((document) => [document._id, document]));
  for (const mark of marks) outcomes.set(mark, outcomeOf(mark, standing.get(mark.eventId)));
}

/** Whether the row stands as the mark says, whoever wrote it: a mark whose answer was lost is repeated. */
export function outcomeOf(mark: Mark, row: Standing | undefined): MarkOutcome {
  if (row === undefined) return { kind: 'missing' };
  return standsAsMarked(mark, row) ? { kind: 'done' } : { kind: 'refused', status: row.status };
}

function standsAsMarked(mark: Mark, row: Standing): boolean {
  switch (mark.kind) {
    case 'published':
      return row.status === 'PUBLISHED';
    case 'failed':
      return row.revision === mark.revision + 1 && row.status === mark.status && row.retryCount === mark.retryCount;
    case 'unanswered':
      return row.revision === mark.revision + 1 && row.unanswered && row.status !== 'PUBLISHED';
    case 'claimed':
      return row.revision === mark.revision + 1 && row.status === 'PROCESSING' && row.claim?.relay === mark.relay;
  }
}
