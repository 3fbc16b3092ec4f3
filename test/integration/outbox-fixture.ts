import { createCatalogue, defineEvent, type OutboxDocument, type OutboxHeadDocument } from '@nightporter/contracts';
import { connectMongo, ensureOutboxCollections } from '@nightporter/mongo';
import { createOutbox, type EmitRequest, type Outbox } from '@nightporter/outbox';
import { aggregateKey, isNightporterError } from '@nightporter/protocol';
import type { Collection, MongoClient } from 'mongodb';
import { z } from 'zod';
import { uniqueName } from '../support/stack.js';

const noted = defineEvent({ type: 'Noted', version: 1, aggregateType: 'note', topic: 'notes', schema: z.unknown() });
const filed = defineEvent({ type: 'Filed', version: 2, aggregateType: 'file', topic: 'files', schema: z.unknown() });
export const catalogue = createCatalogue([noted, filed]);

export interface OutboxFixture {
  readonly client: MongoClient;
  readonly database: string;
  readonly outbox: Outbox;
  readonly rows: Collection<OutboxDocument>;
  readonly heads: Collection<OutboxHeadDocument>;
  /** What the business itself writes. */
  readonly notes: Collection<{ _id: string; text: string }>;
  /** Versions that stand in the outbox, ascending. */
  readonly versionsOf: (aggregateId: string) => Promise<number[]>;
  readonly headOf: (aggregateId: string, aggregateType?: string) => Promise<number | undefined>;
  /** Domain documents, outbox rows and heads. */
  readonly counts: () => Promise<[number, number, number]>;
}

export function connect(uri: string): Promise<MongoClient> {
  return connectMongo({ uri, poolMax: 50 });
}

/** An outbox in a database of its own. */
export async function outboxFixture(client: MongoClient): Promise<OutboxFixture> {
  const database = uniqueName('outbox');
  await ensureOutboxCollections(client, database);
  const db = client.db(database);
  await db.createCollection('notes');
  const rows = db.collection<OutboxDocument>('outbox');
  const heads = db.collection<OutboxHeadDocument>('outbox_heads');
  const notes = db.collection<{ _id: string; text: string }>('notes');
  return {
    client,
    database,
    outbox: createOutbox({ client, database, source: 'tests', catalogue }),
    rows,
    heads,
    notes,
    versionsOf: async (aggregateId) => {
      const found = await rows.find({ aggregateId }, { sort: { aggregateVersion: 1 } }).toArray();
      return found.map(({ aggregateVersion }) => aggregateVersion);
    },
    headOf: async (aggregateId, aggregateType = 'note') => {
      const head = await heads.findOne({ _id: aggregateKey({ source: 'tests', aggregateType, aggregateId }) });
      return head?.version;
    },
    counts: async () => [await notes.countDocuments(), await rows.countDocuments(), await heads.countDocuments()],
  };
}

export function note(aggregateId: string, fields: Partial<EmitRequest> = {}): EmitRequest {
  return { aggregateType: 'note', aggregateId, eventType: 'Noted', payload: {}, ...fields };
}

/** The code that a promise rejects with, the error itself where it has none of ours, null where it resolves. */
export async function codeOf(run: Promise<unknown>): Promise<unknown> {
  try {
    await run;
  } catch (error) {
    return isNightporterError(error) ? error.code : error;
  }
  return null;
}
