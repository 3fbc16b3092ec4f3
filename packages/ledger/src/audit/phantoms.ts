import type { OutboxDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  archivesOf,
  createFiledRows,
  durableDatabase,
  type InboxDocument,
  type SetAsideDocument,
} from '@nightporter/mongo';
import { aggregateIdentity, type EventId } from '@nightporter/protocol';
import type { GroupPlace, ProducerPlace } from '../questions/deployment.js';
import { headsOf } from './committed.js';
import type { Findings } from './findings.js';

const BATCH = 500;
const SET_ASIDE_MAX = 1_000;

type Part = Pick<InboxDocument, 'eventId' | 'aggregate' | 'version'>;

interface Options {
  readonly home: GroupPlace;
  /** All that are looked at: a record belongs to the one that has the head of its aggregate. */
  readonly producers: readonly ProducerPlace[];
  readonly findings: Findings;
  readonly signal?: AbortSignal | undefined;
}

/** Records of a group's inbox of which no ledger knows the event. Retention may have deleted it where the head counts the version. */
export async function auditPhantoms(options: Options): Promise<number> {
  const { home, signal } = options;
  const database = durableDatabase(home.client, home.database);
  const cursor = database
    .collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox)
    .find({ group: home.group })
    .project<Part>({ eventId: 1, aggregate: 1, version: 1 })
    .batchSize(BATCH);
  let records = 0;
  let batch: Part[] = [];
  try {
    for await (const record of cursor) {
      if (signal?.aborted === true) break;
      records += 1;
      batch.push(record);
      if (batch.length < BATCH) continue;
      await judge(options, batch);
      batch = [];
    }
  } finally {
    await cursor.close();
  }
  await judge(options, batch);
  return records;
}

async function judge({ findings, home, producers }: Options, batch: readonly Part[]): Promise<void> {
  let left = batch;
  for (const producer of producers) left = await withoutKnown(producer, left);
  for (const { aggregate, eventId, version } of left) {
    const owner = await ownerOf(producers, { aggregate, eventId, version });
    if (owner === 'deleted') continue;
    findings.add({
      kind: 'phantom',
      producer: owner ?? producers[0]?.database ?? '',
      group: home.group,
      eventId,
      aggregate,
      version,
      text: `Group ${home.group} has settled it, and ${owner === null ? 'no ledger that is looked at has its aggregate' : 'the ledger has another event at its version, or none'}.`,
    });
  }
}

/** Those that neither outbox nor archive of a producer has. */
async function withoutKnown(producer: ProducerPlace, records: readonly Part[]): Promise<readonly Part[]> {
  if (records.length === 0) return records;
  const database = durableDatabase(producer.client, producer.database);
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  const known = new Set<EventId>();
  // The archives after the outbox: a row that moves is then in one of them.
  for (const documents of [database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ...archives]) {
    const ids = records.map(({ eventId }) => eventId).filter((id) => !known.has(id));
    if (ids.length === 0) return [];
    const found = await documents.find({ _id: { $in: ids } }, { projection: { _id: 1 } }).toArray();
    for (const { _id } of found) known.add(_id);
  }
  const left = records.filter(({ eventId }) => !known.has(eventId));
  if (left.length === 0) return left;
  const filed = new Set(await createFiledRows(database, null).filedAmong(left.map(({ eventId }) => eventId)));
  return left.filter(({ eventId }) => !filed.has(eventId));
}

/** The producer that it should be in, `deleted` where its version is counted and nowhere any more, null where none has its aggregate. */
async function ownerOf(producers: readonly ProducerPlace[], { aggregate, version }: Part): Promise<string | null> {
  for (const producer of producers) {
    const head = (await headsOf(producer, [aggregate])).get(aggregate);
    if (head === undefined) continue;
    return head >= version && !(await hasVersion(producer, { aggregate, version })) ? 'deleted' : producer.database;
  }
  return null;
}

async function hasVersion(
  { client, database: name }: ProducerPlace,
  { aggregate, version }: Pick<Part, 'aggregate' | 'version'>,
): Promise<boolean> {
  const database = durableDatabase(client, name);
  const filter = { ...aggregateIdentity(aggregate), aggregateVersion: version } as object;
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  for (const documents of [database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ...archives])
    if ((await documents.findOne(filter, { projection: { _id: 1 } })) !== null) return true;
  return createFiledRows(database, null).hasVersion(aggregate, version);
}

/** Messages that nobody has dismissed. */
export async function auditSetAside(home: GroupPlace, producer: string, findings: Findings): Promise<void> {
  const aside = durableDatabase(home.client, home.database).collection<SetAsideDocument>(CONSUMER_COLLECTIONS.parked);
  const found = await aside
    .find({ group: home.group, state: 'aside' })
    .sort({ firstFailedAt: 1 })
    .limit(SET_ASIDE_MAX)
    .toArray();
  for (const { _id, count, failure } of found) {
    const times = count === 1 ? '' : `, ${count} times`;
    const text = `Group ${home.group} has set a message aside${times} (${_id}): ${failure.code}: ${failure.message}. Dismiss it once it is explained.`;
    findings.add({
      kind: 'set-aside',
      producer,
      group: home.group,
      eventId: null,
      aggregate: null,
      version: null,
      text,
    });
  }
}
