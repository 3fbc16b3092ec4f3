import { NO_POSITION, type EventId } from '@nightporter/protocol';
import type { Engine } from './engine.js';
import { classify } from './failure.js';
import type { GroupProducer, GroupStanding } from './ledger-ports.js';
import { askLedgers, type Answered } from './ask-ledgers.js';
import { versionKey, type GroupState, type IncomingEvent } from './ports.js';

/** What the ledger knows of versions that the group's own documents no longer tell of; keys as of {@link versionKey}. */
export interface Forgotten {
  /** Which event the ledger has at versions whose inbox records have expired. Else another event would pass for a duplicate. */
  readonly held: ReadonlyMap<string, EventId>;
  /** Versions above the position that the group's watermark has passed long ago: their position was lost. */
  readonly passed: ReadonlySet<string>;
}

const NOTHING: Forgotten = { held: new Map(), passed: new Set() };

/** Asks the ledger only about old events that the group does not know. Rare, since the broker forgets sooner than the inbox. */
export async function forgottenOf<Session>(
  engine: Engine<Session>,
  events: readonly IncomingEvent[],
  state: GroupState,
): Promise<Forgotten> {
  const { ledgerSweep } = engine.ports;
  if (ledgerSweep === undefined) return NOTHING;
  const { producers } = ledgerSweep;
  const expired = events.filter((event) => isExpired(event, state));
  const oldMs = engine.options.inboxRetentionMs / 2;
  const unknown = events.filter((event) => isUnknown(event, state) && ageMs(event, state) >= oldMs);
  if (expired.length === 0 && unknown.length === 0) return NOTHING;
  const passed = unknown.length === 0 ? [] : await passedAmong(producers, unknown, { nowMs: state.nowMs, oldMs });
  return { held: new Map(await heldAmong(engine, producers, expired)), passed: new Set(passed) };
}

/**
 * A ledger that cannot be read for a lasting reason, such as an archive that this worker has no way to, must not hold a queue for ever: what stands at or
 * below its aggregate's position is a repeat then, as it nearly always is, and that it could not be looked up is told.
 */
async function heldAmong<Session>(
  engine: Engine<Session>,
  producers: readonly GroupProducer[],
  expired: readonly IncomingEvent[],
): Promise<readonly (readonly [string, EventId])[]> {
  let answers: readonly Answered[];
  try {
    answers = await askAbout(producers, expired);
  } catch (error) {
    if (classify(error) !== 'failed') throw error;
    engine.tell({ kind: 'ledger-unavailable', operation: 'forgotten', error });
    return [];
  }
  return answers.flatMap(({ place, answer }) =>
    answer.kind === 'published'
      ? [[versionKey(place.aggregate, place.version), answer.event.envelope.eventId] as const]
      : [],
  );
}

/** Never while a group catches up with its history: nothing of that was settled before. */
async function passedAmong(
  producers: readonly GroupProducer[],
  unknown: readonly IncomingEvent[],
  { nowMs, oldMs }: { nowMs: number; oldMs: number },
): Promise<readonly string[]> {
  const standings = new Map<GroupProducer, GroupStanding | null>();
  for (const producer of producers) standings.set(producer, await producer.registry.standing());
  const live = producers.filter((producer) => standings.get(producer)?.state === 'live');
  if (live.length === 0) return [];
  const answers = await askAbout(producers, unknown);
  return answers.flatMap(({ place, answer, producer }) => {
    const standing = producer === null ? null : standings.get(producer);
    if (answer.kind !== 'published' || standing?.state !== 'live') return [];
    const { publishedAtMs } = answer;
    const isPassed = publishedAtMs <= standing.watermarkMs && nowMs - publishedAtMs >= oldMs;
    return isPassed ? [versionKey(place.aggregate, place.version)] : [];
  });
}

function askAbout(producers: readonly GroupProducer[], events: readonly IncomingEvent[]): Promise<readonly Answered[]> {
  return askLedgers(
    producers,
    events.map(({ aggregate, envelope }) => ({ aggregate, version: envelope.aggregateVersion })),
  );
}

function isExpired({ aggregate, envelope }: IncomingEvent, state: GroupState): boolean {
  const { startVersion, version } = state.positions.get(aggregate) ?? NO_POSITION;
  const { aggregateVersion, eventId } = envelope;
  if (aggregateVersion <= startVersion || aggregateVersion > version) return false;
  return !state.inboxByEvent.has(eventId) && !state.inboxByVersion.has(versionKey(aggregate, aggregateVersion));
}

/** Above the position, and neither settled nor parked. */
function isUnknown({ aggregate, envelope }: IncomingEvent, state: GroupState): boolean {
  const { version } = state.positions.get(aggregate) ?? NO_POSITION;
  if (envelope.aggregateVersion <= version || state.inboxByEvent.has(envelope.eventId)) return false;
  const key = versionKey(aggregate, envelope.aggregateVersion);
  return !state.parked.has(key) && !state.inboxByVersion.has(key);
}

/** Not less than the time since the event was published. */
function ageMs({ envelope }: IncomingEvent, { nowMs }: GroupState): number {
  return nowMs - Date.parse(envelope.occurredAt);
}
