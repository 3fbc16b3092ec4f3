import type { OutboxDocument } from '@nightporter/contracts';
import type { OutboxActionOutcome, OutboxActionRequest, OutboxActions } from '@nightporter/relay';
import type { ClientSession, Document, MongoClient } from 'mongodb';
import { namespaceParts } from './collections.js';
import { durableDatabase } from './database.js';
import { assertOperator, literals, recordAction, runAction } from './operator-actions.js';
import { outboxCollection } from './outbox-collection.js';

/**
 * An operator's actions on outbox rows, each in one transaction with its record in `operator_actions` of the same database. Besides what
 * the port says: rejects with NP_ACTION_INVALID where nobody signs, and with NP_CONFIG_INVALID for a namespace that is none.
 */
export function createOutboxActions(client: MongoClient): OutboxActions {
  return {
    retry: (request) => act(client, 'retry-event', request),
    skip: (request) => act(client, 'skip-event', request),
  };
}

type Action = 'retry-event' | 'skip-event';

async function act(client: MongoClient, action: Action, request: OutboxActionRequest): Promise<OutboxActionOutcome> {
  assertOperator(request);
  const { namespace, eventId } = request;
  namespaceParts(namespace);
  const operation = `${action} of ${eventId} in ${namespace}`;
  return runAction(client, operation, (session) => actOnce(client, session, { action, request }));
}

async function actOnce(
  client: MongoClient,
  session: ClientSession,
  { action, request }: { action: Action; request: OutboxActionRequest },
): Promise<OutboxActionOutcome> {
  const { namespace, eventId, by, reason } = request;
  const outbox = outboxCollection(client, namespace);
  const projection = { status: 1, revision: 1 };
  const row = await outbox.findOne<Pick<OutboxDocument, 'status' | 'revision'>>(
    { _id: eventId },
    { session, projection },
  );
  if (row === null) return { kind: 'missing' };
  const { status, revision } = row;
  if (status !== 'DEAD') return { kind: 'refused', status };
  await outbox.updateOne({ _id: eventId, status, revision }, [{ $set: editOf(action, request) }], { session });
  const database = durableDatabase(client, namespaceParts(namespace).database);
  await recordAction(database, session, { action, target: eventId, by, reason });
  return { kind: 'done', revision: revision + 1 };
}

function editOf(action: Action, { by, reason }: OutboxActionRequest): Document {
  return {
    status: 'PENDING',
    retryCount: 0,
    nextRetryAt: null,
    updatedAt: '$$NOW',
    revision: { $add: ['$revision', 1] },
    ...(action === 'skip-event' ? { skip: { ...literals({ by, reason }), at: '$$NOW' } } : {}),
  };
}
