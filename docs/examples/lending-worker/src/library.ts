import { ensureOutboxCollections } from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import type { MongoClient } from 'mongodb';
import { libraryCatalogue } from './events.js';

const DATABASE = 'library';

export interface Library {
  /** The loan and its event commit together. */
  lend(loan: { readonly bookId: string; readonly memberId: string }): Promise<void>;
}

/** The producer: what a service does that writes events. */
export async function openLibrary(client: MongoClient): Promise<Library> {
  const loans = client.db(DATABASE).collection('loans');
  const outbox = createOutbox({ client, database: DATABASE, source: 'library', catalogue: libraryCatalogue });
  await ensureOutboxCollections(client, DATABASE);
  await loans.createIndex({ bookId: 1 });
  return {
    lend: ({ bookId, memberId }) =>
      outbox.transaction(async ({ session, emit }) => {
        await loans.insertOne({ bookId, memberId }, { session });
        await emit({ aggregateType: 'book', aggregateId: bookId, eventType: 'BookLent', payload: { memberId } });
      }),
  };
}
