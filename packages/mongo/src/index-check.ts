import type { OutboxDocument } from '@nightporter/contracts';
import type { Namespace, Slot } from '@nightporter/protocol';
import type { MongoClient } from 'mongodb';
import { mapAtOnce } from './batches.js';
import { hasUnsettledIndex } from './collections.js';
import { outboxCollection } from './outbox-collection.js';

/** Unsettled rows that are compared at most: with more, it is not known, and asked again. */
const COMPARED_MAX = 50_000;
/** Rows that have come or gone between the two readings, and are looked at one by one, at most. */
const SUSPECTS_MAX = 500;
const AT_ONCE = 8;

type Key = Pick<OutboxDocument, 'slot' | 'source' | 'aggregateType' | 'aggregateId' | 'aggregateVersion'>;
type Keyed = Key & Pick<OutboxDocument, '_id'>;

const KEY = { slot: 1, source: 1, aggregateType: 1, aggregateId: 1, aggregateVersion: 1 } as const;

/** Whether the index of what is unsettled is there and has every row that a scan finds; false where that cannot be told. */
export async function indexIsWhole(client: MongoClient, namespace: Namespace): Promise<boolean> {
  const outbox = outboxCollection(client, namespace);
  // Without it both readings are scans, which agree.
  if (!(await hasUnsettledIndex(client, namespace))) return false;
  const scanned = await outbox
    .find({ unsettled: true }, { hint: { $natural: 1 } })
    .project<Keyed>(KEY)
    .limit(COMPARED_MAX + 1)
    .toArray();
  if (scanned.length > COMPARED_MAX) return false;
  const indexed = await outbox
    .find({ unsettled: true, slot: { $gte: 0 as Slot } })
    .project<Pick<Keyed, '_id'>>({ _id: 1 })
    .toArray();
  const found = new Set(indexed.map(({ _id }) => _id));
  const suspects = scanned.filter(({ _id }) => !found.has(_id));
  if (suspects.length > SUSPECTS_MAX) return false;
  const missing = await mapAtOnce(suspects, AT_ONCE, async ({ _id, ...key }) => {
    if ((await outbox.findOne({ unsettled: true, ...key }, { projection: { _id: 1 } })) !== null) return false;
    // It was published meanwhile, unless it is unsettled still: then it has been all the time.
    return (await outbox.findOne({ _id, unsettled: true }, { projection: { _id: 1 } })) !== null;
  });
  return !missing.includes(true);
}
