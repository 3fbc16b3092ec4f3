import type { ProducerLedger } from '@nightporter/consumer';
import { defaultEventKey, type OutboxDocument, type OutboxHeadDocument } from '@nightporter/contracts';
import { createRetention, type Retention, type RetentionOptions } from '@nightporter/ledger';
import {
  OUTBOX_COLLECTIONS,
  ensureOutboxCollections,
  registerGroup,
  type GroupDocument,
  type OperatorActionDocument,
  type RegistryDocument,
} from '@nightporter/mongo';
import {
  aggregateKey,
  aggregateVersion,
  eventId,
  namespace,
  type EventId,
  type Namespace,
} from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { outboxDocument } from '../conformance/mongo-samples.js';

export const DAY_MS = 86_400_000;
export const TOPIC = 'sample-events';
/** Noon, so that nothing crosses midnight while a test runs. */
export const NOW = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2);

export interface PublishedSample {
  readonly aggregateId: string;
  readonly daysAgo: number;
  readonly topic?: string;
  readonly status?: OutboxDocument['status'];
}

/** A producer's database with an outbox of its own. */
export interface RetentionFixture {
  readonly client: MongoClient;
  readonly database: string;
  readonly outbox: Namespace;
  readonly retention: (options?: Partial<RetentionOptions>) => Retention;
  /** Inserts rows that were published days ago; versions are dense. Returns the documents. */
  readonly publish: (samples: readonly PublishedSample[]) => Promise<readonly OutboxDocument[]>;
  /** Registers a group whose watermark is days ago; null: where a group from the beginning starts. */
  readonly group: (name: string, daysAgo: number | null, topics?: readonly string[]) => Promise<void>;
  readonly left: () => Promise<readonly EventId[]>;
  readonly registry: () => Promise<RegistryDocument | null>;
  readonly actions: () => Promise<readonly OperatorActionDocument[]>;
}

export const daysAgo = (days: number): Date => new Date(NOW.getTime() - days * DAY_MS);

export async function retentionFixture(client: MongoClient, database: string): Promise<RetentionFixture> {
  await ensureOutboxCollections(client, database);
  const own = client.db(database);
  const outbox = own.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const groups = own.collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const versions = new Map<string, number>();
  return {
    client,
    database,
    outbox: namespace(`${database}.${OUTBOX_COLLECTIONS.outbox}`),
    retention: (options = {}) =>
      createRetention({
        client,
        namespace: namespace(`${database}.${OUTBOX_COLLECTIONS.outbox}`),
        destination: { kind: 'delete' },
        afterMs: 7 * DAY_MS,
        pauseMs: 0,
        ...options,
      }),
    async publish(samples) {
      const documents = samples.map((sample) => {
        const version = (versions.get(sample.aggregateId) ?? 0) + 1;
        versions.set(sample.aggregateId, version);
        return publishedDocument(database, sample, version);
      });
      await outbox.insertMany(documents);
      await writeHeads(client, database, versions);
      return documents;
    },
    async group(name, days, topics = [TOPIC]) {
      await registerGroup(client, database, { group: name, topics });
      if (days !== null) await groups.updateOne({ _id: name }, { $set: { watermark: daysAgo(days) } });
    },
    left: async () => (await outbox.find({}, { projection: { _id: 1 } }).toArray()).map(({ _id }) => _id).sort(),
    registry: () => own.collection<RegistryDocument>(OUTBOX_COLLECTIONS.groups).findOne({ _id: 'registry' }),
    actions: () => own.collection<OperatorActionDocument>(OUTBOX_COLLECTIONS.actions).find().sort({ _id: 1 }).toArray(),
  };
}

function publishedDocument(source: string, sample: PublishedSample, version: number): OutboxDocument {
  const { aggregateId, daysAgo: days, status = 'PUBLISHED', topic = TOPIC } = sample;
  const identity = { source, aggregateType: 'sample', aggregateId };
  const id = eventId(randomUUID());
  const { unsettled, ...row } = outboxDocument({ ...identity, version, id, eventKey: defaultEventKey(identity) });
  const at = daysAgo(days);
  const dated = { ...row, topic, status, occurredAt: at, createdAt: at, updatedAt: at };
  return status === 'PUBLISHED'
    ? { ...dated, publishedAt: at }
    : { ...dated, ...(unsettled && { unsettled }), publishedAt: null };
}

async function writeHeads(client: MongoClient, database: string, versions: ReadonlyMap<string, number>): Promise<void> {
  const heads = client.db(database).collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  await heads.bulkWrite(
    [...versions].map(([aggregateId, version]) => {
      const identity = { source: database, aggregateType: 'sample', aggregateId };
      const head = { version: aggregateVersion(version), eventKey: defaultEventKey(identity) };
      return { updateOne: { filter: { _id: aggregateKey(identity) }, update: { $set: head }, upsert: true } };
    }),
  );
}

export function idsOf(documents: readonly OutboxDocument[]): readonly EventId[] {
  return documents.map(({ _id }) => _id).sort();
}

/** Reads the ledger as a group's sweep does, page by page to its end. */
export async function walk(ledger: ProducerLedger, limit: number): Promise<readonly EventId[]> {
  const seen: EventId[] = [];
  let afterMs = 0;
  for (let pages = 0; pages < 50; pages += 1) {
    const page = await ledger.readPublished({ topics: [TOPIC], afterMs, lagMs: 1_000, limit, withArchive: true });
    seen.push(...page.rows.map(({ eventId }) => eventId));
    if (page.isEnd) return seen;
    expect(page.toMs).toBeGreaterThan(afterMs);
    afterMs = page.toMs;
  }
  throw new Error('the walk does not end');
}
