import { NO_POSITION, type EventId } from '@nightporter/protocol';
import { askLedgers } from './ledger-work.js';
import type { Engine } from './engine.js';
import { versionKey, type EventPlace, type GroupState } from './ports.js';

const NOTHING: ReadonlyMap<string, EventId> = new Map();

/**
 * For messages at versions that were settled so long ago that their inbox records have expired: which event the ledger has there.
 * Without that, another event that claims such a version would pass for a duplicate. Rare, since the broker forgets sooner.
 */
export async function heldByLedger<Session>(
  engine: Engine<Session>,
  events: readonly EventPlace[],
  state: GroupState,
): Promise<ReadonlyMap<string, EventId>> {
  const forgotten = events.filter((event) => isForgotten(event, state));
  if (forgotten.length === 0 || engine.ports.ledgerSweep === undefined) return NOTHING;
  const places = forgotten.map(({ aggregate, envelope }) => ({ aggregate, version: envelope.aggregateVersion }));
  const held = new Map<string, EventId>();
  for (const { place, answer } of await askLedgers(engine.ports.ledgerSweep.producers, places)) {
    if (answer.kind !== 'published') continue;
    held.set(versionKey(place.aggregate, place.version), answer.event.envelope.eventId);
  }
  return held;
}

function isForgotten({ aggregate, envelope }: EventPlace, state: GroupState): boolean {
  const { startVersion, version } = state.positions.get(aggregate) ?? NO_POSITION;
  const { aggregateVersion, eventId } = envelope;
  if (aggregateVersion <= startVersion || aggregateVersion > version) return false;
  return !state.inboxByEvent.has(eventId) && !state.inboxByVersion.has(versionKey(aggregate, aggregateVersion));
}
