import { type Namespace } from '@nightporter/protocol';
import type { HistoryFigures, OutboxFigures, OutboxStats, UnsettledFigures, UnsettledStatus } from '@nightporter/relay';
import type { Document, MongoClient, Timestamp } from 'mongodb';
import { guarded, messageOf } from './driver-errors.js';
import { outboxCollection } from './outbox-collection.js';

/** Rows of one outbox in one status that are counted at most: a backlog is no reason to read it whole every few seconds. */
export const COUNTED_MAX = 10_000;

const STATUSES: readonly UnsettledStatus[] = ['PENDING', 'PROCESSING', 'FAILED', 'DEAD'];

interface Counted {
  readonly status: UnsettledStatus;
  readonly rows: number;
  readonly oldestAgeMs: number | null;
}

/**
 * Counts what is in one status, on the index that begins with it: in one count for all, a backlog would hide the rows that are DEAD.
 * Ages are the database's. Both dates as numbers, see leases.ts.
 */
function pipeline(status: UnsettledStatus, countedMax: number): Document[] {
  const oldestAgeMs = { $subtract: [{ $toLong: '$$NOW' }, { $toLong: '$oldest' }] };
  return [
    { $match: { status } },
    { $limit: countedMax },
    { $group: { _id: null, rows: { $sum: 1 }, oldest: { $min: '$createdAt' } } },
    { $project: { rows: 1, oldestAgeMs: { $toDouble: oldestAgeMs } } },
  ];
}

/** `countedMax` rows of each outbox and status at most; default {@link COUNTED_MAX}. */
export function createOutboxStats(
  client: MongoClient,
  namespaces: readonly Namespace[],
  countedMax = COUNTED_MAX,
): OutboxStats {
  return {
    read: () =>
      guarded(`counting what is unsettled in ${namespaces.join(', ')}`, async (): Promise<OutboxFigures> => {
        const counts = namespaces.flatMap((namespace) =>
          STATUSES.map((status) => countOf(client, namespace, { status, countedMax })),
        );
        const counted = await Promise.all(counts);
        const isCapped = counted.some(({ rows }) => rows >= countedMax);
        return { unsettled: unsettledOf(counted), isCapped, history: await historyOf(client) };
      }),
  };
}

async function countOf(
  client: MongoClient,
  namespace: Namespace,
  { status, countedMax }: { readonly status: UnsettledStatus; readonly countedMax: number },
): Promise<Counted> {
  const rows = outboxCollection(client, namespace);
  const [counted] = await rows.aggregate<UnsettledFigures>(pipeline(status, countedMax)).toArray();
  return { status, rows: counted?.rows ?? 0, oldestAgeMs: counted?.oldestAgeMs ?? null };
}

function sumOf(statuses: readonly Counted[]): number {
  return statuses.reduce((sum, { rows }) => sum + rows, 0);
}

function unsettledOf(counted: readonly Counted[]): OutboxFigures['unsettled'] {
  const figuresOf = (status: UnsettledStatus): UnsettledFigures => {
    const own = counted.filter((one) => one.status === status);
    const ages = own.flatMap(({ oldestAgeMs }) => (oldestAgeMs === null ? [] : [Math.max(0, oldestAgeMs)]));
    return { rows: sumOf(own), oldestAgeMs: ages.length === 0 ? null : Math.max(...ages) };
  };
  const [pending, processing, failed, dead] = STATUSES.map(figuresOf) as [
    UnsettledFigures,
    UnsettledFigures,
    UnsettledFigures,
    UnsettledFigures,
  ];
  return { PENDING: pending, PROCESSING: processing, FAILED: failed, DEAD: dead };
}

/** The first and the last entry of the oplog, where the server has one that may be read: not every deployment lets its users. */
async function historyOf(client: MongoClient): Promise<HistoryFigures> {
  try {
    const oplog = client.db('local').collection<{ ts?: Timestamp }>('oplog.rs');
    const at = async (direction: 1 | -1): Promise<number | undefined> => {
      const options = { sort: { $natural: direction }, projection: { ts: 1 }, maxTimeMS: 2_000 } as const;
      return (await oplog.findOne({}, options))?.ts?.t;
    };
    const [first, last] = [await at(1), await at(-1)];
    if (first === undefined || last === undefined) return { kind: 'unknown', reason: 'local.oplog.rs has no entries' };
    return { kind: 'known', reachMs: Math.max(0, (last - first) * 1_000) };
  } catch (error) {
    return { kind: 'unknown', reason: `local.oplog.rs cannot be read: ${messageOf(error)}` };
  }
}
