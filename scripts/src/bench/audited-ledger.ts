import { defaultEventKey, digestOf, envelopeOf, type OutboxDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  ensureConsumerCollections,
  ensureOutboxCollections,
  placeId,
  positionId,
  registerGroup,
  type GroupDocument,
} from '@nightporter/mongo';
import {
  aggregateKey,
  aggregateVersion,
  epoch,
  eventId,
  slotOf,
  type AggregateKey,
  type EventId,
} from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';

const INSERTED_AT_ONCE = 1_000;
const INBOX_RETENTION_MS = 90 * 24 * 60 * 60 * 1_000;

export interface AuditedLedgerOptions {
  readonly client: MongoClient;
  /** The producer's database, and the source of its events. */
  readonly producer: string;
  readonly topic: string;
  /** Groups, each with the database of its own. */
  readonly groups: readonly { readonly group: string; readonly database: string }[];
  readonly aggregates: number;
}

/** A ledger as outbox, relay and groups would have left it, written in bulk: every event published, and settled in every group. */
export interface AuditedLedger {
  /** Writes so many events more, the aggregates in turn. They are published now, so behind the mark of an audit that was made before. */
  write(count: number, told?: (written: number) => void): Promise<void>;
}

export async function auditedLedger(options: AuditedLedgerOptions): Promise<AuditedLedger> {
  const { aggregates, client, groups, producer, topic } = options;
  await ensureOutboxCollections(client, producer);
  for (const { database, group } of groups) {
    await ensureConsumerCollections(client, database);
    await registerGroup(client, producer, { group, topics: [topic] });
  }
  const beganMs = Date.now();
  const last = new Map<AggregateKey, OutboxDocument>();
  let written = 0;
  return {
    async write(count, told = () => undefined) {
      const touched = new Map<AggregateKey, OutboxDocument>();
      const started = written;
      for (const end = written + count; written < end;) {
        const size = Math.min(INSERTED_AT_ONCE, end - written);
        const rows = Array.from({ length: size }, (_, at) => {
          const index = written + at;
          const identity = {
            source: producer,
            aggregateType: 'sample',
            aggregateId: `aggregate-${index % aggregates}`,
          };
          const key = aggregateKey(identity);
          const row = rowOf({ identity, topic, index, beganMs, version: (last.get(key)?.aggregateVersion ?? 0) + 1 });
          last.set(key, row);
          touched.set(key, row);
          return row;
        });
        await insertRows(options, rows);
        written += size;
        told(written - started);
      }
      await writeStandings(options, [...touched]);
    },
  };
}

interface RowRequest {
  readonly identity: Pick<OutboxDocument, 'source' | 'aggregateType' | 'aggregateId'>;
  readonly topic: string;
  readonly index: number;
  readonly beganMs: number;
  readonly version: number;
}

function rowOf({ beganMs, identity, index, topic, version }: RowRequest): OutboxDocument {
  const at = new Date();
  const eventKey = defaultEventKey(identity);
  const event = {
    _id: idOf(beganMs, index),
    ...identity,
    aggregateVersion: aggregateVersion(version),
    eventType: 'SampleHappened',
    eventVersion: 1,
    occurredAt: at,
    headers: { correlationId: `story-${index}` },
    payload: { value: index, text: 'as long as a small event may be', lines: [{ product: 'apple', quantity: 3 }] },
  };
  const form = 'original' as const;
  const publication = { messageId: `message-${index}`, topic, relay: 'bench', epoch: epoch(1), capturedAt: at, form };
  const nothing = { retryCount: 0, nextRetryAt: null, lastError: null, skip: null, unanswered: false };
  const moments = { createdAt: at, publishedAt: at, updatedAt: at };
  const digest = digestOf(envelopeOf(event, form));
  const state = { status: 'PUBLISHED' as const, revision: 2, publication, ...nothing };
  return { ...event, topic, eventKey, digest, slot: slotOf(eventKey), ...state, ...moments };
}

function idOf(beganMs: number, index: number): EventId {
  const hex = (beganMs + index).toString(16).padStart(12, '0');
  return eventId(`${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${index.toString(16).padStart(12, '0')}`);
}

async function insertRows({ client, groups, producer }: AuditedLedgerOptions, rows: readonly OutboxDocument[]) {
  const outbox = client.db(producer).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  await outbox.insertMany([...rows], { ordered: false });
  for (const { database, group } of groups) {
    const inbox = client.db(database).collection<{ _id: string }>(CONSUMER_COLLECTIONS.inbox);
    const records = rows.map((row) => recordOf(group, row));
    await inbox.insertMany(records, { ordered: false });
  }
}

function recordOf(group: string, row: OutboxDocument) {
  const aggregate = aggregateKey(row);
  const { _id, aggregateVersion: version, createdAt, digest } = row;
  const place = { _id: placeId(group, aggregate, version), group, eventId: _id, aggregate, version };
  const outcome = { outcome: 'applied', digest, appliedDigest: digest, attempts: 1, duplicates: 0 };
  const expireAt = new Date(createdAt.getTime() + INBOX_RETENTION_MS);
  return { ...place, ...outcome, receivedAt: createdAt, processedAt: createdAt, expireAt };
}

/** Heads, positions and watermarks, as the last event of each aggregate leaves them. */
async function writeStandings(
  { client, groups, producer }: AuditedLedgerOptions,
  last: readonly (readonly [AggregateKey, OutboxDocument])[],
): Promise<void> {
  const entry = client.db(producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const heads = last.map(([_id, { aggregateVersion: version, eventKey }]) => ({ _id, version, eventKey }));
  await replaceAll(client, { database: producer, collection: OUTBOX_COLLECTIONS.heads }, heads);
  for (const { database, group } of groups) {
    const positions = last.map(([aggregate, { aggregateVersion: version }]) => {
      const _id = positionId(group, aggregate);
      return { _id, group, aggregate, version, startVersion: 0, state: 'open', revision: version };
    });
    await replaceAll(client, { database, collection: CONSUMER_COLLECTIONS.positions }, positions);
    await entry.updateOne({ _id: group }, [{ $set: { watermark: '$$NOW', state: 'live' } }]);
  }
}

async function replaceAll(
  client: MongoClient,
  { collection, database }: { readonly database: string; readonly collection: string },
  documents: readonly { readonly _id: string }[],
): Promise<void> {
  const target = client.db(database).collection<{ _id: string }>(collection);
  for (let start = 0; start < documents.length; start += INSERTED_AT_ONCE) {
    const some = documents.slice(start, start + INSERTED_AT_ONCE);
    const replacements = some.map(({ _id, ...replacement }) => ({
      replaceOne: { filter: { _id }, replacement, upsert: true },
    }));
    await target.bulkWrite(replacements, { ordered: false });
  }
}
