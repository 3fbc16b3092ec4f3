import type { OutboxDocument, OutboxStatus } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, createOutboxActions, durableDatabase, guarded } from '@nightporter/mongo';
import { namespace, type EventId } from '@nightporter/protocol';
import { assertDecision, assertLimit, type Decision } from '../requests.js';
import type { EventSummary } from './contract.js';
import type { Deployment } from './deployment.js';
import { summaryOf } from './timeline.js';

/** A row that the relay has not published. */
export interface OutboxEntry extends EventSummary {
  readonly attempts: number;
  readonly nextRetryAt: Date | null;
  readonly lastError: string | null;
}

export type UnpublishedStatus = Exclude<OutboxStatus, 'PUBLISHED'>;

export type OutboxAct = Awaited<ReturnType<ReturnType<typeof createOutboxActions>['retry']>>;

/** Rows of one status, `limit` (most 1,000) of each producer, those of an aggregate by version. Rejects with NP_ACTION_INVALID or NP_STORE_UNAVAILABLE. */
export async function listOutbox(
  { producers }: Deployment,
  { limit, status }: { readonly limit: number; readonly status: UnpublishedStatus },
): Promise<readonly OutboxEntry[]> {
  assertLimit(limit);
  const entries: OutboxEntry[] = [];
  for (const { client, database } of producers) {
    const outbox = durableDatabase(client, database).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
    const found = await guarded(`listing ${outbox.namespace}`, () =>
      outbox.find({ unsettled: true, status }).sort({ _id: 1 }).limit(limit).toArray(),
    );
    const where = { producer: database, place: OUTBOX_COLLECTIONS.outbox };
    entries.push(
      ...found.map((row) => ({
        ...summaryOf(row, where),
        attempts: row.retryCount,
        nextRetryAt: row.nextRetryAt,
        lastError: row.lastError,
      })),
    );
  }
  return entries;
}

/**
 * Has the relay try a dead row again, or publish a tombstone in its place. `missing` where no producer's outbox has it. On record in
 * `operator_actions`. Rejects with NP_ACTION_INVALID or NP_STORE_UNAVAILABLE.
 */
export async function actOnOutbox(
  { producers }: Deployment,
  action: 'retry' | 'skip',
  { by, eventId, reason }: Decision & { readonly eventId: EventId },
): Promise<OutboxAct> {
  assertDecision({ by, reason });
  for (const { client, database } of producers) {
    const place = namespace(`${database}.${OUTBOX_COLLECTIONS.outbox}`);
    const outcome = await createOutboxActions(client)[action]({ namespace: place, eventId, by, reason });
    if (outcome.kind !== 'missing') return outcome;
  }
  return { kind: 'missing' };
}
