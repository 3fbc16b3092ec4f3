import { decodeEnvelope, type OutboxDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  archivesOf,
  createFiledRows,
  durableDatabase,
  type InboxDocument,
  type SetAsideDocument,
} from '@nightporter/mongo';
import { aggregateIdentity, aggregateKey } from '@nightporter/protocol';
import type { Collection } from 'mongodb';
import type { GroupPlace, ProducerPlace } from '../questions/deployment.js';
import { timelineOf, SIGNED } from '../questions/mending.js';
import { risingHeads, type Heads } from './committed.js';
import type { Difference } from './contract.js';
import type { Findings } from './findings.js';
import { byIds, heightsOf, type Rising } from './lookups.js';
import { compareStrings, mergeSorted } from './ordered.js';
import { risingLowest } from './version-streams.js';

const BATCH = 500;
const STREAMED = 2_000;
const SET_ASIDE_MAX = 1_000;

type Part = Pick<InboxDocument, 'eventId' | 'aggregate' | 'version'>;

interface Options {
  readonly home: GroupPlace;
  /** All that are looked at: a record belongs to the one that has the head of its aggregate. */
  readonly producers: readonly ProducerPlace[];
  readonly findings: Findings;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Records of a group's inbox of which no ledger knows the event. Retention may have deleted it where the head counts the version. Ledgers and
 * inbox come as streams in the order of event ids; only what has no counterpart there is looked for by its id.
 */
export async function auditPhantoms(options: Options): Promise<number> {
  const { home, signal } = options;
  const ledgers = (await Promise.all(options.producers.map(ledgerIds))).flat();
  const known = options.producers.map((producer): Known => ({
    producer,
    heads: risingHeads(producer),
    lowest: risingLowest(durableDatabase(producer.client, producer.database)),
  }));
  let records = 0;
  let lastKnown: string | null = null;
  let batch: Part[] = [];
  // Of equal ids the ledger's comes first.
  for await (const item of mergeSorted<Item>([...ledgers, inboxRecords(home)], byEventId)) {
    if (signal?.aborted === true) break;
    if (item.record === null) lastKnown = item.eventId;
    else {
      records += 1;
      if (item.eventId !== lastKnown) batch.push(item.record);
    }
    if (batch.length < BATCH) continue;
    await judge(options, known, batch);
    batch = [];
  }
  await judge(options, known, batch);
  return records;
}

/** The id of an event, in a ledger or in the inbox. */
interface Item {
  readonly eventId: string;
  /** Null: in a ledger. */
  readonly record: Part | null;
}

function byEventId(left: Item, right: Item): number {
  return compareStrings(left.eventId, right.eventId);
}

async function ledgerIds({ client, database: name }: ProducerPlace): Promise<readonly AsyncGenerator<Item>[]> {
  const database = durableDatabase(client, name);
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  return [database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ...archives].map(idsIn);
}

async function* idsIn(documents: Collection<OutboxDocument>): AsyncGenerator<Item> {
  const cursor = documents.find().project<Pick<OutboxDocument, '_id'>>({ _id: 1 }).sort({ _id: 1 }).batchSize(STREAMED);
  try {
    // What somebody else has written there may have any id, and stand anywhere in the order.
    for await (const { _id } of cursor) if (typeof _id === 'string') yield { eventId: _id, record: null };
  } finally {
    await cursor.close();
  }
}

async function* inboxRecords({ client, database, group }: GroupPlace): AsyncGenerator<Item> {
  const inbox = durableDatabase(client, database).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  const cursor = inbox
    .find({ group })
    .project<Part>({ _id: 0, eventId: 1, aggregate: 1, version: 1 })
    .sort({ group: 1, eventId: 1 })
    .batchSize(STREAMED);
  try {
    for await (const record of cursor) yield { eventId: record.eventId, record };
  } finally {
    await cursor.close();
  }
}

/** Of one producer, remembered over the whole walk. */
interface Known {
  readonly producer: ProducerPlace;
  readonly heads: Heads;
  readonly lowest: Rising<number>;
}

async function judge({ findings, home }: Options, known: readonly Known[], batch: readonly Part[]): Promise<void> {
  let left = batch;
  for (const { producer } of known) left = await withoutKnown(producer, left);
  for (const one of known) left = await withoutOwned(one, { findings, home, records: left });
  const [first] = known;
  for (const record of left)
    findings.add(phantomOf(record, { home, producer: first?.producer.database ?? '', isOwned: false }));
}

/** Names those that the producer should have; those that are of no aggregate of it are left. */
async function withoutOwned(
  { heads, lowest, producer }: Known,
  { findings, home, records }: { findings: Findings; home: GroupPlace; records: readonly Part[] },
): Promise<readonly Part[]> {
  if (records.length === 0) return records;
  const versions = await heads.read(heightsOf(records.map(({ aggregate, version }) => [aggregate, version])));
  const owned = records.filter(({ aggregate }) => versions.has(aggregate));
  const counted = owned.filter(({ aggregate, version }) => (versions.get(aggregate) ?? 0) >= version);
  const from = await lowest.read(heightsOf(counted.map(({ aggregate, version }) => [aggregate, version + 1])));
  const deleted = new Set<Part>();
  for (const record of counted) {
    // Retention deletes an aggregate's first versions: what is below the lowest that is there needs no look of its own.
    const isBelow = (from.get(record.aggregate) ?? 0) > record.version;
    if (isBelow || !(await hasVersion(producer, record))) deleted.add(record);
  }
  for (const record of owned)
    if (!deleted.has(record)) findings.add(phantomOf(record, { home, producer: producer.database, isOwned: true }));
  return records.filter(({ aggregate }) => !versions.has(aggregate));
}

function phantomOf(
  { aggregate, eventId, version }: Part,
  { home: { group }, isOwned, producer }: { home: GroupPlace; producer: string; isOwned: boolean },
): Difference {
  const why = isOwned
    ? 'the ledger has another event at its version, or none'
    : 'no ledger that is looked at has its aggregate';
  const text = `Group ${group} has settled it, and ${why}.`;
  return { kind: 'phantom', producer, group, eventId, aggregate, version, text, mend: timelineOf(eventId) };
}

/** Those that neither outbox nor archive of a producer has. */
async function withoutKnown(producer: ProducerPlace, records: readonly Part[]): Promise<readonly Part[]> {
  if (records.length === 0) return records;
  const database = durableDatabase(producer.client, producer.database);
  const archives = (await archivesOf(database)).map(({ documents }) => documents);
  let left = records;
  // The archives after the outbox: a row that moves is then in one of them.
  for (const documents of [database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox), ...archives]) {
    if (left.length === 0) return left;
    const known = await byIds(
      documents,
      left.map(({ eventId }) => eventId),
      { _id: 1 },
    );
    left = left.filter(({ eventId }) => !known.has(eventId));
  }
  if (left.length === 0) return left;
  const filed = new Set(await createFiledRows(database, null).filedAmong(left.map(({ eventId }) => eventId)));
  return left.filter(({ eventId }) => !filed.has(eventId));
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
  const { client, database, group } = home;
  const aside = durableDatabase(client, database).collection<SetAsideDocument>(CONSUMER_COLLECTIONS.parked);
  const found = await aside.find({ group, state: 'aside' }).sort({ firstFailedAt: 1 }).limit(SET_ASIDE_MAX).toArray();
  for (const message of found) {
    const { _id, count, failure } = message;
    const times = count === 1 ? '' : `, ${count} times`;
    findings.add({
      kind: 'set-aside',
      producer,
      group,
      ...claimOf(message),
      text: `Group ${group} has set a message aside${times} (${_id}): ${failure.code}: ${failure.message} Dismiss it once it is explained.`,
      mend: `nightporter dead dismiss ${group} ${JSON.stringify(_id)} ${SIGNED}`,
    });
  }
}

/** Which event it says it is, as far as that can be read: what was altered or is in conflict may say what it wants. */
function claimOf({
  body,
}: Partial<Pick<SetAsideDocument, 'body'>>): Pick<Difference, 'eventId' | 'aggregate' | 'version'> {
  const read = body === undefined ? null : decodeEnvelope(body.buffer);
  if (read?.kind !== 'envelope') return { eventId: null, aggregate: null, version: null };
  const { aggregateVersion, eventId } = read.envelope;
  return { eventId, aggregate: aggregateKey(read.envelope), version: aggregateVersion };
}
