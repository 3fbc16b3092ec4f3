import { digestOf, envelopeOf, type OutboxDocument, type OutboxHeadDocument } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, durableDatabase } from '@nightporter/mongo';
import { aggregateKey, type AggregateKey } from '@nightporter/protocol';
import type { Collection, Db } from 'mongodb';
import type { ProducerPlace } from '../questions/deployment.js';
import type { Difference, ProducerAudit } from './contract.js';
import type { Findings } from './findings.js';
import type { Rule } from './judge.js';

/** Documents of one kind that are told one by one, where each is a document that should not be there. */
const FOREIGN_MAX = 100;
const STATUSES: readonly OutboxDocument['status'][] = ['PENDING', 'PROCESSING', 'FAILED', 'DEAD', 'PUBLISHED'];

/** What the heads count, what is not published though it should be, and documents of no status. Costs what is unsettled, and the heads. */
export async function auditCommitted(
  producer: ProducerPlace,
  { findings, rule }: { readonly findings: Findings; readonly rule: Rule },
): Promise<Pick<ProducerAudit, 'committed' | 'unpublished'>> {
  const database = durableDatabase(producer.client, producer.database);
  const outbox = database.collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  let unpublished = 0;
  const cursor = outbox.find({ unsettled: true }).batchSize(500);
  try {
    for await (const row of cursor) {
      unpublished += 1;
      const difference = unpublishedOf(producer.database, row, rule);
      if (difference === null) continue;
      // It may have been published since the cursor read it.
      const now = await outbox.findOne({ _id: row._id }, { projection: { status: 1 } });
      if (now !== null && now.status === row.status) findings.add(difference);
      else unpublished -= 1;
    }
  } finally {
    await cursor.close();
  }
  await auditStatuses(producer.database, outbox, findings);
  return { committed: await committedIn(database), unpublished };
}

function unpublishedOf(producer: string, row: OutboxDocument, { graceMs, nowMs }: Rule): Difference | null {
  const { createdAt, lastError, retryCount, status } = row;
  const why = lastError === null ? '' : `: ${lastError}`;
  const place = placeOf(producer, row);
  if (status === 'DEAD')
    return {
      ...place,
      kind: 'dead-in-relay',
      text: `The relay gave it up after ${retryCount} attempts${why}. Retry or skip it.`,
    };
  if (!(createdAt instanceof Date))
    return { ...place, kind: 'foreign', text: 'It has no date of creation: no emit() has written it.' };
  const ageMs = nowMs - createdAt.getTime();
  if (ageMs <= graceMs) return null;
  return {
    ...place,
    kind: 'unpublished',
    text: `It is ${status} ${Math.round(ageMs / 1_000)} s after it was created${why}. Its timeline says why.`,
  };
}

async function auditStatuses(producer: string, outbox: Collection<OutboxDocument>, findings: Findings): Promise<void> {
  const odd = await outbox
    .find({ status: { $nin: [...STATUSES] } })
    .limit(FOREIGN_MAX)
    .toArray();
  for (const row of odd)
    findings.add(foreign(producer, row, `Its status is ${JSON.stringify(row.status)}: no emit() has written it.`));
}

async function committedIn(database: Db): Promise<number> {
  const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
  const [sum] = await heads
    .aggregate<{ events: number }>([{ $group: { _id: null, events: { $sum: '$version' } } }])
    .toArray();
  return sum?.events ?? 0;
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
  const ids: string[] = [...new Set(keys)];
  const found = await heads.find({ _id: { $in: ids } }, { projection: { version: 1 } }).toArray();
  return new Map(found.map(({ _id, version }) => [_id, version]));
}

/** Names rows that no head counts, and rows that are not what they were. Returns those that groups should have. */
export async function auditRows<Row extends OutboxDocument>(
  producer: ProducerPlace,
  rows: readonly Row[],
  findings: Findings,
): Promise<readonly Row[]> {
  const heads = await headsOf(producer, rows.map(keyOf));
  return rows.filter((row) => {
    const head = heads.get(keyOf(row)) ?? 0;
    const above = `The head of its aggregate is at ${head}: no emit() has written it.`;
    const defect = row.aggregateVersion > head ? { kind: 'foreign' as const, text: above } : defectOf(row);
    if (defect !== null) findings.add({ ...placeOf(producer.database, row), ...defect });
    return defect?.kind !== 'foreign';
  });
}

/** A document that somebody else has written may have parts that no key can be made of. */
function keyOf(row: OutboxDocument): AggregateKey {
  try {
    return aggregateKey(row);
  } catch {
    return '' as AggregateKey;
  }
}

function placeOf(producer: string, row: OutboxDocument): Omit<Difference, 'kind' | 'text'> {
  const aggregate = keyOf(row);
  const version: unknown = row.aggregateVersion;
  return {
    producer,
    group: null,
    eventId: String(row._id),
    aggregate,
    version: typeof version === 'number' ? version : null,
  };
}

function foreign(producer: string, row: OutboxDocument, text: string): Difference {
  return { ...placeOf(producer, row), kind: 'foreign', text };
}
