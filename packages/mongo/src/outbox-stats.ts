import { type Namespace } from '@nightporter/protocol';
import type { HistoryFigures, OutboxFigures, OutboxStats, UnsettledFigures, UnsettledStatus } from '@nightporter/relay';
import type { Document, MongoClient, Timestamp } from 'mongodb';
import { guarded, messageOf } from './driver-errors.js';
import { outboxCollection } from './outbox-collection.js';

/** Rows of one outbox that are counted at most: a backlog is no reason to read it whole every few seconds. */
export const COUNTED_MAX = 10_000;

const STATUSES: readonly UnsettledStatus[] = ['PENDING', 'PROCESSING', 'FAILED', 'DEAD'];

interface Counted {
  readonly _id: UnsettledStatus;
  readonly rows: number;
  readonly oldestAgeMs: number | null;
}

/** Counts by status what is unsettled, on the index of that; ages are the database's. Both dates as numbers, see leases.ts. */
function pipeline(countedMax: number): Document[] {
  const oldestAgeMs = { $subtract: [{ $toLong: '$$NOW' }, { $toLong: '$oldest' }] };
  return [
    { $match: { unsettled: true } },
    { $limit: countedMax },
    { $group: { _id: '$status', rows: { $sum: 1 }, oldest: { $min: '$createdAt' } } },
    { $project: { rows: 1, oldestAgeMs: { $toDouble: oldestAgeMs } } },
  ];
}

/** `countedMax` rows of each outbox at most; default {@link COUNTED_MAX}. */
export function createOutboxStats(
  client: MongoClient,
  namespaces: readonly Namespace[],
  countedMax = COUNTED_MAX,
): OutboxStats {
  return {
    read: () =>
      guarded(`counting what is unsettled in ${namespaces.join(', ')}`, async (): Promise<OutboxFigures> => {
        const outboxes = namespaces.map((namespace) =>
          outboxCollection(client, namespace).aggregate<Counted>(pipeline(countedMax)).toArray(),
        );
        const counted = await Promise.all(outboxes);
        const isCapped = counted.some((statuses) => sumOf(statuses) >= countedMax);
        return { unsettled: unsettledOf(counted.flat()), isCapped, history: await historyOf(client) };
      }),
  };
}

function sumOf(statuses: readonly Counted[]): number {
  return statuses.reduce((sum, { rows }) => sum + rows, 0);
}

function unsettledOf(counted: readonly Counted[]): OutboxFigures['unsettled'] {
  const figuresOf = (status: UnsettledStatus): UnsettledFigures => {
    const own = counted.filter(({ _id }) => _id === status);
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
