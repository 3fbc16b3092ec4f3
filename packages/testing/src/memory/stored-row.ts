import type { OutboxRow, PublicationForm } from '@nightporter/contracts';
import type { AggregateKey } from '@nightporter/protocol';
import type { SweepCursor } from '@nightporter/relay';

/** A row as stored: what the relay reads of it, and what only the database keeps. */
export type StoredRow = Omit<OutboxRow, 'dueInMs' | 'form'> & {
  readonly aggregate: AggregateKey;
  readonly nextRetryAtMs: number | null;
  readonly publishedAtMs: number | null;
  readonly lastError: string | null;
  readonly skipped: boolean;
  readonly publication: StoredPublication | null;
  readonly claim: { readonly relay: string; readonly atMs: number } | null;
};

/** Who reads: own claims, and claims that are too old, are shown as PENDING. */
export interface Viewer {
  readonly relay: string;
  readonly claimMs: number;
}

export const NOBODY: Viewer = { relay: '', claimMs: 300_000 };

export interface StoredPublication {
  readonly messageId: string;
  readonly topic: string;
  readonly relay: string;
  readonly form: PublicationForm;
}

/** The columns that only the database knows stay in; the type keeps the engine from reading them. */
export function viewOf(stored: StoredRow, { viewer, nowMs }: { viewer: Viewer; nowMs: number }): OutboxRow {
  const claimLeftMs = claimLeftMsOf(stored, viewer, nowMs);
  return {
    ...stored,
    status: stored.status === 'PROCESSING' && claimLeftMs === 0 ? 'PENDING' : stored.status,
    dueInMs: Math.max(0, (stored.nextRetryAtMs ?? 0) - nowMs, claimLeftMs),
    form: stored.publication?.form ?? (stored.skipped ? 'tombstone' : 'original'),
  };
}

function claimLeftMsOf({ status, claim }: StoredRow, viewer: Viewer, nowMs: number): number {
  if (status !== 'PROCESSING' || claim === null || claim.relay === viewer.relay) return 0;
  return Math.max(0, claim.atMs + viewer.claimMs - nowMs);
}

export function isUnsettled(row: StoredRow): boolean {
  return row.status !== 'PUBLISHED';
}

/** The order of every read: namespace, aggregate, version. */
export function compareRows(left: SweepCursor, right: SweepCursor): number {
  return (
    compare(left.namespace, right.namespace) ||
    compare(left.source, right.source) ||
    compare(left.aggregateType, right.aggregateType) ||
    compare(left.aggregateId, right.aggregateId) ||
    left.aggregateVersion - right.aggregateVersion
  );
}

function compare(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
