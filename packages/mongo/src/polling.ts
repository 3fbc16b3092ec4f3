import type { OutboxDocument } from '@nightporter/contracts';
import type { Namespace, Slot } from '@nightporter/protocol';
import type { Polling } from '@nightporter/relay';
import type { Filter, MongoClient } from 'mongodb';
import { partsOf } from './batches.js';
import { guarded } from './driver-errors.js';
import type { IndexDoubts } from './index-doubts.js';
import { outboxCollection } from './outbox-collection.js';

/** The range of slots, which is all of them, lets the index serve it that begins with both. */
const UNSETTLED: Filter<OutboxDocument> = { unsettled: true, slot: { $gte: 0 as Slot } };

/** Few rows, by the index on both: what is claimed has never been published. */
const CLAIMED: Filter<OutboxDocument> = { status: 'PROCESSING', publishedAt: null };

type Claimed = Pick<OutboxDocument, '_id' | 'slot' | 'claim'>;

const GIVEN_BACK = [{ $set: { status: 'PENDING', updatedAt: '$$NOW', revision: { $add: ['$revision', 1] } } }];

/** Ids in one statement. */
const IDS_MAX = 200;

/** Which slots have something to read, and the claims of relays that are gone, in all outboxes. */
export function createPolling(
  client: MongoClient,
  { doubts, namespaces }: { readonly doubts: IndexDoubts; readonly namespaces: readonly Namespace[] },
): Polling {
  return {
    busySlots: (slots) =>
      guarded(`asking which slots of ${namespaces.join(', ')} have unsettled rows`, async () => {
        const busy = await doubts.read(async (doubted) => {
          // What an index lacks may be in any slot.
          if (namespaces.some((namespace) => doubted.has(namespace))) return new Set(slots);
          const found = namespaces.map((namespace) => outboxCollection(client, namespace).distinct('slot', UNSETTLED));
          return new Set((await Promise.all(found)).flat());
        });
        return slots.filter((slot) => busy.has(slot));
      }),
    takeBack: ({ slots, relay }) =>
      guarded(`taking claims back in ${namespaces.join(', ')}`, async () => {
        let rows = 0;
        for (const namespace of namespaces) {
          const outbox = outboxCollection(client, namespace);
          const claimed = await outbox.find(CLAIMED).project<Claimed>({ slot: 1, claim: 1 }).toArray();
          const foreign = claimed.filter(({ slot, claim }) => slots.includes(slot) && claim?.relay !== relay);
          for (const part of partsOf(foreign, IDS_MAX)) {
            const ids = part.map(({ _id }) => _id);
            const { modifiedCount } = await outbox.updateMany({ _id: { $in: ids }, status: 'PROCESSING' }, GIVEN_BACK);
            rows += modifiedCount;
          }
        }
        return rows;
      }),
  };
}
