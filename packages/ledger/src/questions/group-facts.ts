import {
  CONSUMER_COLLECTIONS,
  asideId,
  durableDatabase,
  guarded,
  placeId,
  positionId,
  type GroupActionDocument,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
  type SetAsideDocument,
} from '@nightporter/mongo';
import type { AggregateKey, EventId } from '@nightporter/protocol';
import type { GroupPlace } from './deployment.js';
import type { GroupFacts, ParkedNote } from './explain.js';

/** Everything that a group's documents say about one event. */
export interface GroupRecords {
  readonly inbox: InboxDocument | null;
  readonly parked: ParkedDocument | null;
  readonly aside: SetAsideDocument | null;
  readonly actions: readonly GroupActionDocument[];
  readonly facts: Omit<GroupFacts, 'publishedAtMs' | 'watermarkMs' | 'mayHaveExpired'>;
}

export interface EventPlace {
  readonly eventId: EventId;
  readonly aggregate: AggregateKey;
  readonly version: number;
  /** Of the message that it was published as: an altered copy is set aside by that, since nothing that it says can be trusted. */
  readonly messageId?: string | null;
}

const ACTIONS_MAX = 100;

/** Reads one event in one group, by exact ids. */
export async function readGroup(home: GroupPlace, event: EventPlace): Promise<GroupRecords> {
  const { client, database: name, group } = home;
  const database = durableDatabase(client, name);
  const inbox = database.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  const parked = database.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
  const aside = database.collection<SetAsideDocument>(CONSUMER_COLLECTIONS.parked);
  const positions = database.collection<PositionDocument>(CONSUMER_COLLECTIONS.positions);
  const actions = database.collection<GroupActionDocument>(CONSUMER_COLLECTIONS.actions);
  const { aggregate, eventId, messageId = null, version } = event;
  const asideIds = [eventId, ...(messageId === null ? [] : [messageId])].map((id) => asideId(group, id));
  return guarded(`reading event ${eventId} in group ${group} of ${name}`, async () => {
    // The position first: what is settled meanwhile is then found in the inbox, and nothing seems to be missing.
    const position = await positions.findOne({ _id: positionId(group, aggregate) });
    const next = placeId(group, aggregate, (position?.version ?? 0) + 1);
    const here = placeId(group, aggregate, version);
    const [parkedHere, parkedNext, set, acts] = await Promise.all([
      parked.findOne({ _id: here }),
      parked.findOne({ _id: next }),
      aside.findOne({ _id: { $in: asideIds } }),
      actions.find({ group, eventId }).sort({ at: 1 }).limit(ACTIONS_MAX).toArray(),
    ]);
    const settledHere = await inbox.findOne({ _id: here });
    const settledAs = settledHere?.eventId === eventId ? settledHere : await inbox.findOne({ group, eventId });
    return {
      inbox: settledAs,
      parked: parkedHere?.event.eventId === eventId ? parkedHere : null,
      aside: set,
      actions: acts,
      facts: {
        eventId,
        version,
        position: positionNote(position),
        settledAs:
          settledAs === null
            ? null
            : { outcome: settledAs.outcome, isEdited: settledAs.appliedDigest !== settledAs.digest },
        settledHere: settledHere?.eventId ?? null,
        parkedHere: parkedHere === null ? null : parkedNote(parkedHere),
        parkedNext: parkedNext === null ? null : parkedNote(parkedNext),
      },
    };
  });
}

/** Where a group has an event that no ledger has; null where it does not. */
export async function findInGroup(
  { client, database: name, group }: GroupPlace,
  eventId: EventId,
): Promise<EventPlace | null> {
  const database = durableDatabase(client, name);
  return guarded(`looking for event ${eventId} in group ${group} of ${name}`, async () => {
    const inbox = database.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
    const parked = database.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
    const found =
      (await inbox.findOne({ group, eventId })) ??
      (await parked.findOne({ group, sequenced: true, 'event.eventId': eventId }));
    return found === null ? null : { eventId, aggregate: found.aggregate, version: found.version };
  });
}

export function positionNote(position: PositionDocument | null): GroupFacts['position'] {
  if (position === null) return { version: 0, startVersion: 0, state: 'open', startReason: null };
  const { startReason = null, startVersion, state, version } = position;
  return { version, startVersion, state, startReason };
}

export function parkedNote({ attempts, event, failure, nextRetryAt, state }: ParkedDocument): ParkedNote {
  const reason = failure === null ? null : { code: failure.code, message: failure.message };
  return { eventId: event.eventId, state, attempts, nextRetryAt, failure: reason };
}
