import type { AggregatePlace, LedgerAnswer, ProducerLedger, PublishedPage } from '@nightporter/consumer';
import { digestOf, envelopeOf } from '@nightporter/contracts';
import type { DatabaseClock, MemoryOutbox } from './outbox.js';
import type { StoredRow } from './stored-row.js';

type ReadPublished = Parameters<ProducerLedger['readPublished']>[0];

export function readPublished(outbox: MemoryOutbox, clock: DatabaseClock, request: ReadPublished): PublishedPage {
  const { afterMs, lagMs, limit, topics, withArchive } = request;
  const untilMs = clock() - lagMs;
  const rows = withArchive ? [...outbox.rows(), ...outbox.archived()] : outbox.rows();
  const published = rows
    .filter((row) => publishedAt(row) > afterMs && publishedAt(row) <= untilMs)
    .sort((left, right) => publishedAt(left) - publishedAt(right));
  const last = published[limit - 1];
  const isEnd = last === undefined || published.length === limit;
  const toMs = isEnd ? Math.max(untilMs, afterMs) : publishedAt(last);
  const page = published.filter((row) => publishedAt(row) <= toMs && topics.includes(row.topic));
  return {
    rows: page.map(({ aggregate, aggregateVersion, eventId }) => ({ aggregate, version: aggregateVersion, eventId })),
    toMs,
    isEnd,
  };
}

export function countPublished(outbox: MemoryOutbox, afterMs: number): number {
  return [...outbox.rows(), ...outbox.archived()].filter((row) => publishedAt(row) > afterMs).length;
}

/** Never, for a row that is not published. */
function publishedAt({ publishedAtMs, status }: StoredRow): number {
  return status === 'PUBLISHED' && publishedAtMs !== null ? publishedAtMs : Number.NaN;
}

export function readVersion(outbox: MemoryOutbox, { aggregate, version }: AggregatePlace): LedgerAnswer {
  if (outbox.headOf(aggregate) < version) return { kind: 'not-committed' };
  const row = [...outbox.rows(), ...outbox.archived()].find(
    (candidate) => candidate.aggregate === aggregate && candidate.aggregateVersion === version,
  );
  if (row === undefined) return { kind: 'deleted' };
  if (row.status === 'DEAD') return { kind: 'dead' };
  if (row.status !== 'PUBLISHED' || row.publishedAtMs === null) return { kind: 'unpublished' };
  return { kind: 'published', event: incomingOf(row), publishedAtMs: row.publishedAtMs };
}

/** In the form that was published. */
function incomingOf(row: StoredRow): Extract<LedgerAnswer, { kind: 'published' }>['event'] {
  const form = row.publication?.form ?? (row.skipped ? 'tombstone' : 'original');
  const envelope = envelopeOf(row, form);
  return {
    envelope,
    aggregate: row.aggregate,
    topic: row.topic,
    form,
    digest: form === 'original' ? row.digest : digestOf(envelope),
    messageId: row.publication?.messageId ?? `ledger:${row.eventId}`,
  };
}
