import type { OutboxDocument } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, archivesOf, createFiledRows, durableDatabase } from '@nightporter/mongo';
import type { Collection } from 'mongodb';
import type { ProducerPlace } from '../questions/deployment.js';
import { mergeSorted } from './ordered.js';

export type PublishedRow = OutboxDocument & { readonly publishedAt: Date };

export interface Range {
  readonly afterMs: number;
  readonly untilMs: number;
}

export const BATCH = 1_000;
/** Rows of a file page. */
const PAGE = 1_000;

/**
 * Everything that was published in a range, by publication, from outbox, archive collections and files. A batch never parts rows of one
 * moment, so that "up to the last row of the batch" says which rows are meant.
 */
export async function* publishedBatches(
  producer: ProducerPlace,
  range: Range,
  batchMin = BATCH,
): AsyncGenerator<readonly PublishedRow[]> {
  let batch: PublishedRow[] = [];
  for await (const row of mergeSorted(await sourcesOf(producer, range), byPublication)) {
    if (batch.length >= batchMin && publishedAtMs(row) > publishedAtMs(batch.at(-1) ?? row)) {
      yield batch;
      batch = [];
    }
    batch.push(row);
  }
  if (batch.length > 0) yield batch;
}

function publishedAtMs({ publishedAt }: PublishedRow): number {
  return publishedAt.getTime();
}

function byPublication(left: PublishedRow, right: PublishedRow): number {
  return publishedAtMs(left) - publishedAtMs(right);
}

async function sourcesOf(
  { client, database: name, files }: ProducerPlace,
  range: Range,
): Promise<readonly AsyncIterator<PublishedRow>[]> {
  const database = durableDatabase(client, name);
  const publishedAt = { $gt: new Date(range.afterMs), $lte: new Date(range.untilMs) };
  const open = (documents: Collection<OutboxDocument>, filter: object): AsyncIterator<PublishedRow> => {
    const cursor = documents.find<PublishedRow>({ ...filter, publishedAt });
    return cursor.sort({ publishedAt: 1 }).batchSize(BATCH)[Symbol.asyncIterator]();
  };
  const archives = (await archivesOf(database)).filter(
    ({ fromMs, toMs }) => toMs > range.afterMs && fromMs <= range.untilMs,
  );
  return [
    filedRows(createFiledRows(database, files ?? null), range),
    ...archives.map(({ documents }) => open(documents, {})),
    open(database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), { status: 'PUBLISHED' }),
  ];
}

async function* filedRows(
  filed: ReturnType<typeof createFiledRows>,
  { afterMs, untilMs }: Range,
): AsyncGenerator<PublishedRow> {
  for (let fromMs = afterMs; fromMs < untilMs;) {
    const { rows, toMs } = await filed.readRange({ afterMs: fromMs, untilMs, limit: PAGE });
    yield* rows;
    if (toMs <= fromMs) return;
    fromMs = toMs;
  }
}
