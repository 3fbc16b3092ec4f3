import { createCatalogue, defineEvent, type EventEnvelope } from '@nightporter/contracts';
import type { ClientSession, Collection, Db } from 'mongodb';
import { z } from 'zod';

/** What the handler of the journal worker is told to do, beside its entry in the journal. */
const orders = z.strictObject({
  /** Throws in its first so many attempts. */
  failures: z.number().optional(),
  /** Ends its process, in every attempt. */
  exits: z.boolean().optional(),
  /** Has the database refuse a write, which ends its transaction, in every attempt. */
  offends: z.boolean().optional(),
  /** Takes so long. */
  takesMs: z.number().optional(),
});

export type Orders = z.infer<typeof orders>;

export const EVENT_TYPE = 'SampleHappened';
export const AGGREGATE_TYPE = 'sample';
/** The code with which a handler ends its process. */
export const EXIT_CODE = 70;

/** The events of the proofs, on a topic of the test's own. */
export function journalCatalogue(topic: string) {
  const happened = defineEvent({
    type: EVENT_TYPE,
    version: 1,
    aggregateType: AGGREGATE_TYPE,
    topic,
    schema: z.strictObject({ orders }),
  });
  return createCatalogue([happened]);
}

/**
 * One run of the handler that committed. Only ever inserted, and deliberately not unique by event: here an event shows that took effect
 * twice, or before its predecessor.
 */
export interface JournalEntry {
  readonly eventId: string;
  readonly aggregateId: string;
  readonly version: number;
  /** 1, 2, 3 … per aggregate, in the order of the commits. */
  readonly sequence: number;
  readonly attempt: number;
  readonly processId: number;
  /** By the clock of the worker. */
  readonly at: Date;
}

export interface JournalCollections {
  readonly journal: Collection<JournalEntry>;
  /** Entries so far, by aggregate. */
  readonly counts: Collection<{ readonly _id: string; readonly entries: number }>;
}

export function journalCollections(database: Db): JournalCollections {
  return { journal: database.collection('journal'), counts: database.collection('journal_counts') };
}

/** Collections that a transaction would have to create first would make concurrent ones conflict. */
export async function prepareJournal(database: Db): Promise<void> {
  const { journal, counts } = journalCollections(database);
  await journal.createIndex({ aggregateId: 1, sequence: 1 });
  await counts.createIndex({ entries: 1 });
}

type Identity = Pick<EventEnvelope, 'eventId' | 'aggregateId' | 'aggregateVersion'>;

export async function enterJournal(
  database: Db,
  { event, session, attempt }: { event: Identity; session: ClientSession; attempt: number },
): Promise<void> {
  const { journal, counts } = journalCollections(database);
  const { eventId, aggregateId, aggregateVersion: version } = event;
  const counted = await counts.findOneAndUpdate(
    { _id: aggregateId },
    { $inc: { entries: 1 } },
    { session, upsert: true, returnDocument: 'after' },
  );
  const sequence = counted?.entries ?? 0;
  const entry = { eventId, aggregateId, version, sequence, attempt, processId: process.pid, at: new Date() };
  await journal.insertOne(entry, { session });
}
