import type { OutboxDocument } from '@nightporter/contracts';
import type { MongoClient } from 'mongodb';
import { measuredRow } from './messages.js';

const INSERTED_AT_ONCE = 1_000;

export interface PublishedRows {
  readonly database: string;
  readonly topic: string;
  readonly count: number;
  /** By the number of the row. */
  readonly publishedAt: (number: number) => Date;
}

/** Rows as the relay leaves them, ten of each aggregate. */
export async function writePublishedRows(client: MongoClient, rows: PublishedRows): Promise<void> {
  const outbox = client.db(rows.database).collection<OutboxDocument>('outbox');
  for (let from = 0; from < rows.count; from += INSERTED_AT_ONCE) {
    const count = Math.min(INSERTED_AT_ONCE, rows.count - from);
    await outbox.insertMany(Array.from({ length: count }, (_, index) => publishedRow(rows, from + index)));
  }
}

const ROWS_OF_AN_AGGREGATE = 10;

function publishedRow({ topic, ...rows }: PublishedRows, number: number): OutboxDocument {
  const publishedAt = rows.publishedAt(number);
  const aggregateId = `old-${Math.floor(number / ROWS_OF_AN_AGGREGATE)}`;
  const version = (number % ROWS_OF_AN_AGGREGATE) + 1;
  const row = measuredRow(topic, aggregateId, version);
  return {
    _id: row.eventId,
    source: row.source,
    aggregateType: row.aggregateType,
    aggregateId,
    aggregateVersion: row.aggregateVersion,
    eventType: row.eventType,
    eventVersion: row.eventVersion,
    topic,
    eventKey: row.eventKey,
    payload: row.payload,
    digest: row.digest,
    headers: row.headers,
    slot: row.slot,
    retryCount: 0,
    revision: row.revision,
    unanswered: false,
    status: 'PUBLISHED',
    // Of which the digest was made: a group that reads the row compares it.
    occurredAt: new Date(row.occurredAt),
    createdAt: publishedAt,
    publishedAt,
    updatedAt: publishedAt,
    nextRetryAt: null,
    lastError: null,
    publication: null,
    skip: null,
  };
}
