import {
  defaultEventKey,
  digestOf,
  envelopeOf,
  type OutboxDocument,
  type OutboxHeadDocument,
} from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS } from '@nightporter/mongo';
import { aggregateKey, aggregateVersion, eventId, slotOf, type EventId, type Namespace } from '@nightporter/protocol';
import type { ClientSession, MongoClient } from 'mongodb';
import { randomUUID } from 'node:crypto';

export interface OutboxSample {
  readonly namespace: Namespace;
  readonly aggregateId: string;
}

export function databaseOf(namespace: Namespace): string {
  return namespace.slice(0, namespace.indexOf('.'));
}

export function outboxOf(client: MongoClient, namespace: Namespace): ReturnType<typeof documentsOf> {
  return documentsOf(client, namespace);
}

function documentsOf(client: MongoClient, namespace: Namespace) {
  const database = databaseOf(namespace);
  return client.db(database).collection<OutboxDocument>(namespace.slice(database.length + 1));
}

/** Commits events in one transaction, versions dense per aggregate, as the write side does; returns their ids. */
export async function commitSamples(client: MongoClient, samples: readonly OutboxSample[]): Promise<EventId[]> {
  const ids = samples.map(() => eventId(randomUUID()));
  await client.withSession((session) =>
    session.withTransaction(async () => {
      for (const [index, sample] of samples.entries()) await insertSample({ client, session, sample, id: ids[index]! });
    }),
  );
  return ids;
}

async function insertSample(request: {
  client: MongoClient;
  session: ClientSession;
  sample: OutboxSample;
  id: EventId;
}): Promise<void> {
  const { client, session, sample, id } = request;
  const { namespace, aggregateId } = sample;
  const identity = { source: databaseOf(namespace), aggregateType: 'sample', aggregateId };
  const heads = client.db(identity.source).collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const eventKey = defaultEventKey(identity);
  const head = await heads.findOneAndUpdate(
    { _id: aggregateKey(identity) },
    { $inc: { version: 1 }, $setOnInsert: { eventKey } },
    { session, upsert: true, returnDocument: 'after' },
  );
  const document = outboxDocument({ ...identity, id, eventKey, version: head!.version });
  await outboxOf(client, namespace).insertOne(document, { session });
}

const SAMPLE = {
  eventType: 'SampleHappened',
  topic: 'sample-events',
  headers: { correlationId: 'story 1' },
  payload: { text: 'é ✓ "quoted"', number: -12.5, list: [null, true, {}] },
} satisfies Partial<OutboxDocument>;

/** A row as `emit()` writes it; `content` where the sample's will not do. */
export function outboxDocument(
  place: {
    source: string;
    aggregateType: string;
    aggregateId: string;
    version: number;
    id: EventId;
    eventKey: string;
  },
  content: Partial<Pick<OutboxDocument, 'eventType' | 'topic' | 'headers' | 'payload'>> = {},
): OutboxDocument {
  const { id, eventKey, version, ...identity } = place;
  const { eventType, topic, headers, payload } = { ...SAMPLE, ...content };
  const now = new Date();
  const event = {
    _id: id,
    ...identity,
    aggregateVersion: aggregateVersion(version),
    eventType,
    eventVersion: 1,
    occurredAt: now,
    headers,
    payload,
  };
  return {
    ...event,
    topic,
    eventKey,
    digest: digestOf(envelopeOf(event, 'original')),
    slot: slotOf(eventKey),
    status: 'PENDING',
    unsettled: true,
    retryCount: 0,
    nextRetryAt: null,
    lastError: null,
    createdAt: now,
    publishedAt: null,
    updatedAt: now,
    revision: 1,
    publication: null,
    skip: null,
    unanswered: false,
  };
}
