import { versionKey, type EventPlace, type GroupState, type InboxRecord } from '@nightporter/consumer';
import { aggregateVersion } from '@nightporter/protocol';
import type { ClientSession } from 'mongodb';
import { placeId, positionId, type InboxDocument } from './documents.js';
import type { GroupCollections } from './group-collections.js';
import { parkedEvent } from './parked-documents.js';

/** Everything that a batch of events may meet, by exact ids, in four round trips whatever its size. */
export async function loadGroupState(
  { positions, inbox, parked }: GroupCollections,
  {
    group,
    session,
    events,
    nowMs,
  }: { group: string; session: ClientSession; events: readonly EventPlace[]; nowMs: number },
): Promise<GroupState> {
  const places = events.map(({ aggregate, envelope }) => placeId(group, aggregate, envelope.aggregateVersion));
  const behind = events.map(({ aggregate, envelope }) => placeId(group, aggregate, envelope.aggregateVersion + 1));
  const positionIds = unique(events.map(({ aggregate }) => positionId(group, aggregate)));
  const eventIds = unique(events.map(({ envelope }) => envelope.eventId));
  // One after another: a session has one statement at a time.
  const foundPositions = await positions.find({ _id: { $in: positionIds } }, { session }).toArray();
  const settledHere = await inbox.find({ _id: { $in: unique(places) } }, { session }).toArray();
  const settledAs = await inbox.find({ group, eventId: { $in: eventIds } }, { session }).toArray();
  const foundParked = await parked.find({ _id: { $in: unique([...places, ...behind]) } }, { session }).toArray();
  return {
    nowMs,
    positions: new Map(
      foundPositions.map(({ aggregate, version, startVersion, state }) => [
        aggregate,
        { version, startVersion, state },
      ]),
    ),
    inboxByEvent: new Map(settledAs.map((document) => [document.eventId, inboxRecord(document)])),
    inboxByVersion: new Map(
      settledHere.map((document) => [versionKey(document.aggregate, document.version), inboxRecord(document)]),
    ),
    parked: new Map(
      foundParked.map((document) => [versionKey(document.aggregate, document.version), parkedEvent(document)]),
    ),
  };
}

function inboxRecord({ eventId, aggregate, version, outcome }: InboxDocument): InboxRecord {
  return { eventId, aggregate, version: aggregateVersion(version), outcome };
}

function unique<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)];
}
