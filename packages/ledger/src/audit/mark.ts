import { CONSUMER_COLLECTIONS, durableDatabase, guarded, type GroupDocument } from '@nightporter/mongo';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { Collection } from 'mongodb';
import type { GroupPlace } from '../questions/deployment.js';

export interface OpenEvent {
  readonly eventId: EventId;
  /** Once its row is gone, they alone tell whether the group has got over it. */
  readonly aggregate: AggregateKey;
  readonly version: number;
}

/** `audit_marks` in the group's database: `_id` is the producer's database, `|`, and the group. */
export interface AuditMarkDocument {
  readonly _id: string;
  readonly group: string;
  readonly producer: string;
  /** Everything published up to then was compared and is settled, apart from `open`. */
  readonly comparedTo: Date;
  /** Compared and not settled yet, or different: looked at again by every audit. */
  readonly open: readonly OpenEvent[];
  readonly published: number;
  readonly settled: number;
  readonly beforeStart: number;
  readonly expired: number;
  /** Of the registration that it was made for: another one begins anew. */
  readonly registeredAt: Date;
  readonly topics: readonly string[];
  readonly revision: number;
}

/** More open events are not remembered: then the mark stays where it is, and the next audit reads the same rows again. */
export const OPEN_MAX = 1_000;

export type AuditMark = Omit<AuditMarkDocument, '_id'>;

type Registration = Pick<GroupDocument, '_id' | 'topics' | 'registeredAt'>;

export function newMark(producer: string, { _id: group, registeredAt, topics }: Registration): AuditMark {
  const counts = { published: 0, settled: 0, beforeStart: 0, expired: 0 };
  return { group, producer, comparedTo: new Date(0), open: [], ...counts, registeredAt, topics, revision: 0 };
}

/** The mark of a registration as it is now; one of an earlier registration, of other topics, or of an earlier form does not count. */
export async function readMark(home: GroupPlace, producer: string, registration: Registration): Promise<AuditMark> {
  const found = await guarded(`reading the audit mark of ${home.group}`, () =>
    marksOf(home).findOne({ _id: markId(producer, home.group) }),
  );
  const fresh = newMark(producer, registration);
  if (found === null) return fresh;
  const isOfIt =
    found.registeredAt.getTime() === registration.registeredAt.getTime() &&
    JSON.stringify(found.topics) === JSON.stringify(registration.topics);
  // Marks once named their open events by id alone.
  const isWhole = found.open.every((one) => typeof one === 'object');
  return isOfIt && isWhole ? found : { ...fresh, revision: found.revision };
}

/** Moves the mark, unless another audit has moved it since it was read. Returns whether it did. */
export async function writeMark(home: GroupPlace, mark: AuditMark): Promise<boolean> {
  const _id = markId(mark.producer, mark.group);
  const { revision, ...fields } = mark;
  const next = { ...fields, revision: revision + 1 };
  return guarded(`writing the audit mark of ${mark.group}`, async () => {
    const marks = marksOf(home);
    if (revision > 0) return (await marks.updateOne({ _id, revision }, { $set: next })).matchedCount === 1;
    const { upsertedCount } = await marks.updateOne({ _id }, { $setOnInsert: next }, { upsert: true });
    return upsertedCount === 1;
  });
}

function markId(producer: string, group: string): string {
  return `${producer}|${group}`;
}

function marksOf({ client, database }: GroupPlace): Collection<AuditMarkDocument> {
  return durableDatabase(client, database).collection(CONSUMER_COLLECTIONS.audits);
}
