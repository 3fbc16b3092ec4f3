import { CONSUMER_COLLECTIONS, createDatabaseClock, durableDatabase, type InboxDocument } from '@nightporter/mongo';
import type { EventId } from '@nightporter/protocol';
import type { GroupPlace } from '../questions/deployment.js';

/** A record of the inbox, as far as it is read. */
export type SampledRecord = Pick<InboxDocument, 'group' | 'eventId' | 'processedAt' | 'expireAt'>;

export interface Sample {
  /** By the clock of the group's database. */
  readonly nowMs: number;
  /** Records of the group's database that were read, those of other groups in it included. */
  readonly read: number;
  /** The group's own, the newest first. */
  readonly records: readonly { readonly eventId: EventId; readonly processedAtMs: number }[];
  /** From when on the group's records are all among them; negative infinity where everything was read. */
  readonly completeFromMs: number;
}

/**
 * The newest records of an inbox, at most `recordsMax`. No index leads to `processedAt`, and one more would cost every settled event; the
 * index of the expiry is in the same order as long as the retention of the inbox is not changed, and where it was, what is complete says so.
 */
export async function sampleInbox(place: GroupPlace, recordsMax: number): Promise<Sample> {
  const { client, database, group } = place;
  const inbox = durableDatabase(client, database).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  const fields = { _id: 0, group: 1, eventId: 1, processedAt: 1, expireAt: 1 } as const;
  const now = await createDatabaseClock(client).read();
  const read = await inbox
    .find<SampledRecord>({}, { projection: fields })
    .sort({ expireAt: -1 })
    .limit(recordsMax)
    .toArray();
  // Ids rise with time, so this is about the newest: it shows a retention that is so new that none of its records is among those read.
  const newest = await inbox.findOne<SampledRecord>({ group }, { projection: fields, sort: { eventId: -1 } });
  const own = read.filter((record) => record.group === group);
  const retentionsMs = [...own, ...(newest === null ? [] : [newest])].map(retentionMs);
  const records = own
    .map(({ eventId, processedAt }) => ({ eventId, processedAtMs: processedAt.getTime() }))
    .toSorted((left, right) => right.processedAtMs - left.processedAtMs);
  const earliestExpiryMs = read.length < recordsMax ? null : (read.at(-1)?.expireAt.getTime() ?? null);
  const nowMs = now.getTime();
  return { nowMs, read: read.length, records, completeFromMs: completeFrom({ nowMs, earliestExpiryMs, retentionsMs }) };
}

/**
 * From when on every record is there and was read: what expired before now may be gone, and what expires before the last one that was read
 * was not read (null: there is nothing before it). A record expires when its retention is over, so the shortest one decides.
 */
export function completeFrom(known: {
  readonly nowMs: number;
  readonly earliestExpiryMs: number | null;
  readonly retentionsMs: readonly number[];
}): number {
  if (known.retentionsMs.length === 0) return Number.NEGATIVE_INFINITY;
  const shortestMs = known.retentionsMs.reduce((least, one) => Math.min(least, one), Number.POSITIVE_INFINITY);
  return Math.max(known.nowMs, known.earliestExpiryMs ?? known.nowMs) - shortestMs;
}

function retentionMs({ expireAt, processedAt }: SampledRecord): number {
  return expireAt.getTime() - processedAt.getTime();
}
