import type { DeadLetterCopies, DeadLetterCopy } from '@nightporter/consumer';
import type { EventEnvelope } from '@nightporter/contracts';
import type { DatabaseClock } from './database-clock.js';
import type { CopyDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import type { GroupCollections } from './group-collections.js';

interface CopiesOptions {
  readonly group: string;
  readonly collections: GroupCollections;
  readonly clock: DatabaseClock;
}

export function createDeadLetterCopies(options: CopiesOptions): DeadLetterCopies {
  const { collections, group } = options;
  const place = `${collections.copies.namespace} of group ${group}`;
  return {
    claim: (claimMs) => guarded(`claiming a copy in ${place}`, () => claim(options, claimMs)),
    done: (id) =>
      guarded(`removing a copy from ${place}`, async () => {
        await collections.copies.deleteOne({ _id: id, group });
      }),
  };
}

/** How many are looked at: more than members that may be at it at once. */
const LOOK_MAX = 10;

async function claim({ clock, collections, group }: CopiesOptions, claimMs: number): Promise<DeadLetterCopy | null> {
  const { copies } = collections;
  const waiting = await copies
    .find({ group, nextTryAt: { $lte: await clock.read() } })
    .sort({ nextTryAt: 1 })
    .limit(LOOK_MAX)
    .toArray();
  for (const found of waiting) {
    // Conditional on what was read: who is second finds it changed.
    const { modifiedCount } = await copies.updateOne({ _id: found._id, nextTryAt: found.nextTryAt }, [
      { $set: { nextTryAt: { $add: ['$$NOW', claimMs] } } },
    ]);
    if (modifiedCount === 1) return copyOf(found);
  }
  return null;
}

function copyOf({
  _id,
  aggregate,
  attempts,
  diedAt,
  event,
  failure,
  group,
  writtenDigest,
}: CopyDocument): DeadLetterCopy {
  const { digest, envelope, form, messageId, topic } = event;
  const written = writtenDigest === null ? {} : { writtenDigest };
  return {
    id: _id,
    group,
    event: { envelope: JSON.parse(envelope) as EventEnvelope, aggregate, topic, form, digest, ...written, messageId },
    attempts,
    failure,
    diedAtMs: diedAt.getTime(),
  };
}
