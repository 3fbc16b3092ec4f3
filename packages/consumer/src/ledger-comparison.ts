import { NO_POSITION } from '@nightporter/protocol';
import type { Engine } from './engine.js';
import { corruptionOf } from './incoming.js';
import type { PublishedReference } from './ledger-ports.js';
import { versionKey, type EventPlace, type GroupState } from './ports.js';

/** Places that are asked for in one transaction. */
const LOOK_MAX = 200;

/** Those of the published rows that the group has neither settled nor parked. */
export async function missingAmong<Session>(
  engine: Engine<Session>,
  rows: readonly PublishedReference[],
): Promise<readonly PublishedReference[]> {
  const missing: PublishedReference[] = [];
  for (let start = 0; start < rows.length; start += LOOK_MAX) {
    const part = rows.slice(start, start + LOOK_MAX);
    const state = await engine.ports.store.transact((transaction) => transaction.load(part.map(placeOf)));
    missing.push(...part.filter((row) => isMissing(row, state)));
  }
  return missing;
}

function placeOf({ aggregate, eventId, version }: PublishedReference): EventPlace {
  return { aggregate, envelope: { eventId, aggregateVersion: version } };
}

/** Neither settled nor parked; or its place is taken by another event, or by what is not the event that was written. */
function isMissing({ aggregate, eventId, version }: PublishedReference, state: GroupState): boolean {
  const position = state.positions.get(aggregate) ?? NO_POSITION;
  if (version <= position.startVersion) return false;
  const key = versionKey(aggregate, version);
  const parked = state.parked.get(key)?.event;
  const holder = state.inboxByVersion.get(key)?.eventId ?? parked?.envelope.eventId;
  if (version <= position.version) return holder !== undefined && holder !== eventId;
  if (parked !== undefined && corruptionOf(parked) !== null) return true;
  return holder !== eventId || state.inboxByVersion.has(key);
}
