import type { OutboxDocument, OutboxRow, OutboxStatus } from '@nightporter/contracts';
import type { Namespace } from '@nightporter/protocol';

/** What a row looks like at a moment. */
export interface Moment {
  /** By the database's clock. */
  readonly now: Date;
  /** How long a claim (PROCESSING) stands before the row counts as PENDING again. */
  readonly claimMs: number;
  /** Whose own claims count as PENDING. */
  readonly owner: string;
}

/**
 * The row that the relay works with; without a moment it counts as due.
 * Never throws: a document that somebody wrote past `emit()` comes as it is, so that the relay can refuse it where an operator sees it.
 */
export function outboxRow(namespace: Namespace, document: OutboxDocument, moment: Moment | null): OutboxRow {
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
    retryCount: document.retryCount,
    revision: document.revision,
    unanswered: document.unanswered,
    occurredAt: timestampOf(document.occurredAt),
    ...createdAtOf(document),
    form: document.skip ? 'tombstone' : 'original',
    ...standingOf(document, moment),
  };
}

/** Whether it takes the database's clock to tell how the row stands. */
export function needsMoment({ status, nextRetryAt }: OutboxDocument): boolean {
  return status === 'PROCESSING' || nextRetryAt instanceof Date;
}

function standingOf(
  { status, nextRetryAt, updatedAt, claim }: OutboxDocument,
  moment: Moment | null,
): { readonly status: OutboxStatus; readonly dueInMs: number } {
  if (moment === null) return { status, dueInMs: 0 };
  const { now, claimMs, owner } = moment;
  if (status === 'PROCESSING') {
    if (claim?.relay === owner) return { status: 'PENDING', dueInMs: 0 };
    const sinceMs = updatedAt instanceof Date ? updatedAt.getTime() : 0;
    const leftMs = sinceMs + claimMs - now.getTime();
    return leftMs > 0 ? { status, dueInMs: leftMs } : { status: 'PENDING', dueInMs: 0 };
  }
  return { status, dueInMs: nextRetryAt instanceof Date ? Math.max(0, nextRetryAt.getTime() - now.getTime()) : 0 };
}

function createdAtOf({ createdAt }: { readonly createdAt: unknown }): { readonly createdAtMs?: number } {
  const isDate = createdAt instanceof Date && !Number.isNaN(createdAt.getTime());
  return isDate ? { createdAtMs: createdAt.getTime() } : {};
}

function timestampOf(occurredAt: unknown): string {
  const isDate = occurredAt instanceof Date && !Number.isNaN(occurredAt.getTime());
  return isDate ? occurredAt.toISOString() : String(occurredAt);
}
