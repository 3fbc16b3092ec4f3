import { digestOf, envelopeOf, type OutboxDocument, type OutboxHeadDocument } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, durableDatabase } from '@nightporter/mongo';
import { aggregateKey, type AggregateKey } from '@nightporter/protocol';
import type { Collection, Db } from 'mongodb';
import type { ProducerPlace } from '../questions/deployment.js';
import { retryOf, timelineOf } from '../questions/mending.js';
import type { Difference, ProducerAudit } from './contract.js';
import type { Findings } from './findings.js';
import type { Rule } from './judge.js';
import { Rising, byIds, heightsOf } from './lookups.js';
import { inBatches } from './ordered.js';

/** Documents of one kind that are told one by one, where each is a document that should not be there. */
const FOREIGN_MAX = 100;
const BATCH = 500;
const STATUSES: readonly OutboxDocument['status'][] = ['PENDING', 'PROCESSING', 'FAILED', 'DEAD', 'PUBLISHED'];

/** What the heads count, what is not published though it should be, and documents of no status. Costs what is unsettled, and the heads. */
export async function auditCommitted(
  producer: ProducerPlace,
  { findings, rule }: { readonly findings: Findings; readonly rule: Rule },
): Promise<Pick<ProducerAudit, 'committed' | 'unpublished'>> {
  const database = durableDatabase(producer.client, producer.database);
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  let unpublished = 0;
  for await (const batch of inBatches(outbox.find({ unsettled: true }).batchSize(BATCH), BATCH)) {
    unpublished += batch.length;
    const differences = batch.flatMap((row) => {
      const difference = unpublishedOf(producer.database, row, rule);
      return difference === null ? [] : [{ row, difference }];
    });
    // They may have been published since the cursor read them.
    const now = await byIds<Standing>(
      outbox as unknown as Collection<Standing>,
      differences.map(({ row }) => row._id),
      { status: 1 },
    );
    for (const { difference, row } of differences) {
      if (now.get(row._id)?.status === row.status) findings.add(difference);
      else unpublished -= 1;
    }
  }
  await auditStatuses(producer.database, outbox, findings);
  return { committed: await committedIn(database), unpublished };
}

type Standing = Pick<OutboxDocument, '_id' | 'status'>;

function unpublishedOf(producer: string, row: OutboxDocument, { graceMs, nowMs }: Rule): Difference | null {
  const { createdAt, lastError, retryCount, status } = row;
  const why = lastError === null ? '' : `: ${lastError}`;
  const place = placeOf(producer, row);
  if (status === 'DEAD') {
    const text = `The relay gave it up after ${retryCount} attempts${why}. Mend the cause and retry it, or skip it.`;
    return { ...place, kind: 'dead-in-relay', text, mend: retryOf(row._id) };
  }
  if (!(createdAt instanceof Date))
    return foreign(producer, row, 'It has no date of creation: no emit() has written it.');
  const ageMs = nowMs - createdAt.getTime();
  if (ageMs <= graceMs) return null;
  return {
    ...place,
    kind: 'unpublished',
    text: `It is ${status} ${Math.round(ageMs / 1_000)} s after it was created${why}. Its timeline says why.`,
    mend: timelineOf(row._id),
  };
}

/** What no mark of a relay leaves behind, and what nobody therefore looks for: neither relay nor groups would ever come upon it. */
const CONTRADICTIONS: readonly { readonly filter: object; readonly what: string }[] = [
  { filter: { status: 'PUBLISHED', publishedAt: null }, what: 'and has no date of publication: no group looks for it' },
  {
    filter: { status: { $in: STATUSES.filter((status) => status !== 'PUBLISHED') }, unsettled: { $ne: true } },
    what: 'and is not marked as unsettled: no relay looks for it',
  },
];

async function auditStatuses(producer: string, outbox: Collection<OutboxDocument>, findings: Findings): Promise<void> {
  const odd = await outbox
    .find({ status: { $nin: [...STATUSES] } })
    .limit(FOREIGN_MAX)
    .toArray();
  for (const row of odd)
    findings.add(foreign(producer, row, `Its status is ${JSON.stringify(row.status)}: no emit() has written it.`));
  for (const { filter, what } of CONTRADICTIONS) {
    for (const row of await outbox.find(filter).limit(FOREIGN_MAX).toArray()) {
      const text = `It is ${row.status}, ${what}. Somebody has changed it by hand.`;
      const mend = `${inOutbox(producer)}.updateOne(${filterOf(row)}, { $set: { status: "PENDING", unsettled: true } }) in mongosh: the relay sends it`;
      findings.add({ ...placeOf(producer, row), kind: 'altered-status', text, mend });
    }
  }
}

function inOutbox(producer: string): string {
  return `db.getSiblingDB(${JSON.stringify(producer)}).${OUTBOX_COLLECTIONS.outbox}`;
}

function filterOf({ _id }: Pick<OutboxDocument, '_id'>): string {
  const id: unknown = _id;
  return `{ _id: ${typeof id === 'string' ? JSON.stringify(id) : `ObjectId("${String(id)}")`} }`;
}

async function committedIn(database: Db): Promise<number> {
  const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const [sum] = await heads
    .aggregate<{ events: number }>([{ $group: { _id: null, events: { $sum: '$version' } } }])
    .toArray();
  return sum?.events ?? 0;
}

export type Heads = Rising<number>;

/** Heads of aggregates, by key. */
export function risingHeads(producer: ProducerPlace): Heads {
  const load = (keys: readonly string[]) => headsOf(producer, keys as readonly AggregateKey[]);
  return new Rising({ heightOf: (version) => version, load });
}

/** What is wrong with a row as it stands; null where nothing is. */
function defectOf(row: OutboxDocument): { readonly kind: 'foreign' | 'altered-row'; readonly text: string } | null {
  try {
    const digest = digestOf(envelopeOf(row, 'original'));
    if (digest === row.digest) return null;
    return {
      kind: 'altered-row',
      text: `Its digest is ${row.digest}, and that of what it says is ${digest}: it was changed after it was written.`,
    };
  } catch (error) {
    return {
      kind: 'foreign',
      text: `It cannot be an event that emit() has written: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** Heads of the aggregates, by key. */
export async function headsOf(
  producer: ProducerPlace,
  keys: readonly AggregateKey[],
): Promise<ReadonlyMap<string, number>> {
  const database = durableDatabase(producer.client, producer.database);
  const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const found = await byIds(heads, keys, { version: 1 });
  return new Map([...found.values()].map(({ _id, version }) => [_id, version]));
}

/** Names rows that no head counts, and rows that are not what they were. Returns those that groups should have. */
export async function auditRows<Row extends OutboxDocument>(
  { database }: ProducerPlace,
  rows: readonly Row[],
  { findings, heads }: { readonly heads: Heads; readonly findings: Findings },
): Promise<readonly Row[]> {
  const versions = await heads.read(heightsOf(rows.map((row) => [keyOf(row), row.aggregateVersion])));
  return rows.filter((row) => {
    const head = versions.get(keyOf(row)) ?? 0;
    const above = `The head of its aggregate is at ${head}: no emit() has written it.`;
    const defect = row.aggregateVersion > head ? { kind: 'foreign' as const, text: above } : defectOf(row);
    if (defect?.kind === 'foreign') findings.add(foreign(database, row, defect.text));
    if (defect?.kind === 'altered-row') {
      const mend = `Restore ${row._id} in ${database}.${OUTBOX_COLLECTIONS.outbox} from a backup`;
      findings.add({ ...placeOf(database, row), ...defect, mend });
    }
    return defect?.kind !== 'foreign';
  });
}

/** A document that somebody else has written may have parts that no key can be made of. */
function keyOf({ aggregateId, aggregateType, source }: OutboxDocument): AggregateKey {
  const parts: readonly unknown[] = [source, aggregateType, aggregateId];
  if (!parts.every((part) => typeof part === 'string')) return '' as AggregateKey;
  try {
    return aggregateKey({ source, aggregateType, aggregateId });
  } catch {
    return '' as AggregateKey;
  }
}

function placeOf(producer: string, row: OutboxDocument): Omit<Difference, 'kind' | 'text' | 'mend'> {
  const aggregate = keyOf(row);
  const version: unknown = row.aggregateVersion;
  return {
    producer,
    group: null,
    eventId: String(row._id),
    aggregate: aggregate === '' ? null : aggregate,
    version: typeof version === 'number' ? version : null,
  };
}

function foreign(producer: string, row: OutboxDocument, text: string): Difference {
  const mend = `${inOutbox(producer)}.deleteOne(${filterOf(row)}) in mongosh, and stop whoever writes there`;
  return { ...placeOf(producer, row), kind: 'foreign', text, mend };
}
