import type { OutboxDocument } from '@nightporter/contracts';
import { NightporterError } from '@nightporter/protocol';
import type { ClientSession, Collection } from 'mongodb';
import { isDuplicateKey } from './failures.js';

/**
 * Writes the documents of a transaction in one insert.
 * @throws NP_VERSION_CONFLICT when the outbox has one of these event ids, or another event at one of these versions.
 */
export async function insertEvents(
  outbox: Collection<OutboxDocument>,
  session: ClientSession,
  documents: readonly OutboxDocument[],
): Promise<void> {
  try {
    await outbox.insertMany(documents, { session, ordered: true });
  } catch (cause) {
    throw isDuplicateKey(cause) ? versionConflict(documents, cause) : cause;
  }
}

function versionConflict(documents: readonly OutboxDocument[], cause: unknown): NightporterError {
  const events = documents.map(
    ({ _id, aggregateType, aggregateId, aggregateVersion }) =>
      `${_id} (${aggregateType} ${JSON.stringify(aggregateId)} version ${aggregateVersion})`,
  );
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new NightporterError(
    'NP_VERSION_CONFLICT',
    `The outbox already has one of these events, or another event at one of these versions, so that its heads are behind its rows: ${events.slice(0, 5).join(', ')}. ${detail}`,
    { cause },
  );
}
