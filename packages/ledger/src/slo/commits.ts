import type { OutboxDocument } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, archivesOf, createFiledRows, durableDatabase } from '@nightporter/mongo';
import { isNightporterError, type EventId } from '@nightporter/protocol';
import type { Collection } from 'mongodb';
import { byIds, partsOf } from '../audit/lookups.js';
import type { ProducerPlace } from '../questions/deployment.js';

/** What is looked for in archives, at most: files are read whole. */
const ARCHIVED_MAX = 5_000;

export interface Commits {
  /** When the events were committed, on their producers' clocks. What is missing was not found. */
  readonly atMs: ReadonlyMap<EventId, number>;
  readonly notes: readonly string[];
}

/** Looks for events in the outboxes of the producers, then in what retention has moved, those first that come first in `ids`. */
export async function commitsOf(producers: readonly ProducerPlace[], ids: readonly EventId[]): Promise<Commits> {
  const atMs = new Map<EventId, number>();
  const notes: string[] = [];
  const missing = (): EventId[] => ids.filter((id) => !atMs.has(id));
  const look = async (documents: Collection<OutboxDocument>, wanted: readonly EventId[]): Promise<void> => {
    // A document that no `emit()` has written may have any date, or none.
    const rows = documents as unknown as Collection<{ _id: EventId; createdAt?: unknown }>;
    for (const [id, { createdAt }] of await byIds(rows, wanted, { createdAt: 1 }))
      if (createdAt instanceof Date) atMs.set(id, createdAt.getTime());
  };
  for (const { client, database } of producers)
    await look(durableDatabase(client, database).collection(OUTBOX_COLLECTIONS.outbox), missing());
  const moved = missing();
  if (moved.length > ARCHIVED_MAX)
    notes.push(
      `Of ${moved.length} events that are in no outbox any more, the newest ${ARCHIVED_MAX} were looked for in archives.`,
    );
  const wanted = (): EventId[] => moved.slice(0, ARCHIVED_MAX).filter((id) => !atMs.has(id));
  for (const producer of producers) {
    const database = durableDatabase(producer.client, producer.database);
    // The latest first: most of what was settled lately was published lately.
    for (const { documents } of (await archivesOf(database)).toReversed()) await look(documents, wanted());
    const note = await lookInFiles(producer, wanted(), atMs);
    if (note !== null) notes.push(note);
  }
  return { atMs, notes };
}

/** Resolves to a sentence where a file could not be read: the events are not known then, and the others are. */
async function lookInFiles(
  { client, database, files }: ProducerPlace,
  ids: readonly EventId[],
  atMs: Map<EventId, number>,
): Promise<string | null> {
  const filed = createFiledRows(durableDatabase(client, database), files ?? null);
  try {
    for (const part of partsOf(ids))
      for (const { _id, createdAt } of await filed.findEvents(part)) atMs.set(_id, createdAt.getTime());
    return null;
  } catch (error) {
    if (!isNightporterError(error, 'NP_ARCHIVE_FAILED')) throw error;
    return error.message;
  }
}
