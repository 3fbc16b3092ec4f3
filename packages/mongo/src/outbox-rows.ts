import type { OutboxDocument, OutboxRow } from '@nightporter/contracts';
import type { Namespace } from '@nightporter/protocol';

/**
 * The row that the relay works with. `now` is the database's clock; without it a row counts as due.
 * Never throws: a document that somebody wrote past `emit()` comes as it is, so that the relay can refuse it where an operator sees it.
 */
export function outboxRow(namespace: Namespace, document: OutboxDocument, now: Date | null): OutboxRow {
  return {
    namespace,
    eventId: document._id,
    source: document.source,
    aggregateType: document.aggregateType,
    aggregateId: document.aggregateId,
    aggregateVersion: document.aggregateVersion,
    eventType: document.eventType,
    eventVersion: document.eventVersion,
    topic: document.topic,
    eventKey: document.eventKey,
    payload: document.payload,
    digest: document.digest,
    headers: document.headers,
    slot: document.slot,
    status: document.status,
    retryCount: document.retryCount,
    revision: document.revision,
    unanswered: document.unanswered,
    occurredAt: timestampOf(document.occurredAt),
    dueInMs: dueInMs(document.nextRetryAt, now),
    form: document.skip ? 'tombstone' : 'original',
  };
}

/** Whether the row cannot be told to be due without the database's clock. */
export function hasRetryTime(document: OutboxDocument): boolean {
  return document.nextRetryAt instanceof Date;
}

function dueInMs(nextRetryAt: Date | null, now: Date | null): number {
  if (!(nextRetryAt instanceof Date) || now === null) return 0;
  return Math.max(0, nextRetryAt.getTime() - now.getTime());
}

function timestampOf(occurredAt: unknown): string {
  const isDate = occurredAt instanceof Date && !Number.isNaN(occurredAt.getTime());
  return isDate ? occurredAt.toISOString() : String(occurredAt);
}
