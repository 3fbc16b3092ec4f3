import type { Namespace } from '@nightporter/protocol';
import type { Db, MongoClient } from 'mongodb';
import { RELAY_COLLECTIONS } from './collections.js';
import type { DatabaseClock } from './database-clock.js';
import type { DoubtedIndexesDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { indexIsWhole } from './index-check.js';

/** Outboxes whose indexes may lack rows. */
export type Doubted = ReadonlySet<Namespace>;

/**
 * Doubts about the indexes of outboxes, kept in `relay_doubted_indexes` for all relays of the database.
 *
 * A server may create an index while transactions are open, and never put into it what these commit then (SecantusDB does; MongoDB waits for
 * them). Who reads by that index would publish v6 before v5. So a doubt is *raised* before the indexes of an outbox are created again, and
 * while it stands the outbox is read by scan. It is *dropped* once every transaction of that time must have ended and two
 * comparisons in a row, some time apart, have found in the index all that a scan finds.
 */
export interface IndexDoubts {
  /** To be called before the indexes are created: afterwards, whoever has read by them learns that he must read again. */
  raise(namespace: Namespace): Promise<void>;
  /** Runs a read that scans the doubted outboxes, and again where a doubt was raised meanwhile. */
  read<Result>(read: (doubted: Doubted) => Promise<Result>): Promise<Result>;
}

export interface IndexDoubtsOptions {
  readonly client: MongoClient;
  /** The relay's. */
  readonly database: Db;
  readonly clock: DatabaseClock;
  /** The outboxes that are read: doubts of others are not looked for. */
  readonly namespaces: readonly Namespace[];
  /** Longer than a transaction may be open, by the server's transactionLifetimeLimitSeconds: 60 s unless configured. Default 90,000 ms. */
  readonly settleMs?: number;
  /** Least time between two comparisons. Default 10,000 ms. */
  readonly compareEveryMs?: number;
}

const SETTLE_MS = 90_000;
const COMPARE_EVERY_MS = 10_000;
const AGREED_ENOUGH = 2;

/** What this process knows of a doubt. */
interface Known {
  readonly sinceMs: number;
  /** Comparisons in a row that found nothing missing. */
  agreed: number;
  comparedAtMs: number;
}

export function createIndexDoubts(options: IndexDoubtsOptions): IndexDoubts {
  const { client, clock, compareEveryMs = COMPARE_EVERY_MS, database, namespaces, settleMs = SETTLE_MS } = options;
  const documents = database.collection<DoubtedIndexesDocument>(RELAY_COLLECTIONS.doubtedIndexes);
  const known = new Map<Namespace, Known>();

  async function raise(namespace: Namespace): Promise<void> {
    await guarded(`doubting the indexes of ${namespace}`, () =>
      documents.updateOne({ _id: namespace }, [{ $set: { since: '$$NOW' } }], { upsert: true }),
    );
  }

  async function refresh(): Promise<Doubted> {
    const found = await documents.find({ _id: { $in: [...namespaces] } }).toArray();
    const standing = new Map(found.map(({ _id, since }) => [_id, since.getTime()]));
    for (const namespace of [...known.keys()]) if (!standing.has(namespace)) known.delete(namespace);
    for (const [namespace, sinceMs] of standing) {
      if (known.get(namespace)?.sinceMs === sinceMs) continue;
      known.set(namespace, { sinceMs, agreed: 0, comparedAtMs: performance.now() });
    }
    return new Set(standing.keys());
  }

  /** The doubt is looked for behind the read: it was raised before the index was created that the read may have used. */
  async function read<Result>(run: (doubted: Doubted) => Promise<Result>): Promise<Result> {
    for (let scanned: Doubted = new Set(known.keys()); ;) {
      const result = await run(scanned);
      const doubted = await refresh();
      const isSound = [...doubted].every((namespace) => scanned.has(namespace));
      scanned = doubted;
      if (!isSound) continue;
      for (const namespace of doubted) await compareNowAndThen(namespace);
      return result;
    }
  }

  async function compareNowAndThen(namespace: Namespace): Promise<void> {
    const doubt = known.get(namespace);
    const nowMs = performance.now();
    if (doubt === undefined || nowMs - doubt.comparedAtMs < compareEveryMs) return;
    // Set at once: other reads that run beside this one need not compare too.
    doubt.comparedAtMs = nowMs;
    if ((await clock.read()).getTime() - doubt.sinceMs < settleMs) return;
    doubt.agreed = (await indexIsWhole(client, namespace)) ? doubt.agreed + 1 : 0;
    if (doubt.agreed < AGREED_ENOUGH) return;
    // A doubt that was raised again meanwhile stands.
    await documents.deleteOne({ _id: namespace, since: new Date(doubt.sinceMs) });
  }

  return { raise, read };
}
