import { OUTBOX_COLLECTIONS, durableDatabase, guarded } from '@nightporter/mongo';
import { aggregateVersion, type AggregateKey, type AggregateVersion } from '@nightporter/protocol';
import { invalid } from '../requests.js';
import type { Selected, Selection } from './contract.js';
import { isSelected } from './selection.js';
import type { Producer, World } from './world.js';

/** What is selected of one producer. */
export interface Survey {
  /** Versions by aggregate, rising. */
  readonly versions: ReadonlyMap<AggregateKey, readonly number[]>;
  readonly events: number;
  readonly first: Selected | null;
  readonly last: Selected | null;
}

interface Place {
  readonly aggregate: AggregateKey;
  readonly version: AggregateVersion;
}

const PAGE = 500;
/** Places that are asked for in one request. */
const LOOK_MAX = 100;

/** Finds what is selected of what was published up to `untilMs`. Holds places only, `eventsMax` at most. */
export async function survey(
  world: World,
  producer: Producer,
  { selection, untilMs }: { selection: Selection; untilMs: number },
): Promise<Survey> {
  const versions = new Map<AggregateKey, Set<number>>();
  let events = 0;
  let first: Selected | null = null;
  let last: Selected | null = null;
  for await (const places of placesOf(world, producer, { selection, untilMs })) {
    for (const answer of await producer.ledger.readVersions(places)) {
      if (answer.kind !== 'published' || answer.publishedAtMs > untilMs) continue;
      const { event, publishedAtMs } = answer;
      const { aggregate, envelope } = event;
      if (!producer.topics.includes(event.topic)) continue;
      if (!isSelected(selection, { aggregate, eventType: envelope.eventType, publishedAtMs })) continue;
      const known = versions.get(aggregate) ?? new Set();
      if (known.has(envelope.aggregateVersion)) continue;
      versions.set(aggregate, known.add(envelope.aggregateVersion));
      events += 1;
      if (events > world.eventsMax) throw tooMany(world);
      const { aggregateVersion: version, eventId } = envelope;
      const selected: Selected = { eventId, aggregate, version, publishedAt: new Date(publishedAtMs) };
      if (first === null || selected.publishedAt < first.publishedAt) first = selected;
      if (last === null || selected.publishedAt >= last.publishedAt) last = selected;
    }
  }
  const rising = [...versions].map(([aggregate, found]) => [aggregate, [...found].sort((a, b) => a - b)] as const);
  return { versions: new Map(rising), events, first, last };
}

function tooMany({ eventsMax }: World): Error {
  return invalid(
    `More than ${eventsMax} events are selected; accepted: eventsMax or fewer. Select less at a time, or start a new generation from the beginning.`,
  );
}

interface Asked {
  readonly selection: Selection;
  readonly untilMs: number;
}

/** Where selected events may be, a few at a time: by the heads where aggregates are named, else by walking what was published. */
function placesOf(world: World, producer: Producer, asked: Asked): AsyncGenerator<readonly Place[]> {
  const { aggregates } = asked.selection;
  return aggregates === undefined ? walked(world, producer, asked) : headed(world, producer, aggregates);
}

async function* headed(
  { client }: World,
  { database }: Producer,
  aggregates: readonly AggregateKey[],
): AsyncGenerator<readonly Place[]> {
  const heads = durableDatabase(client, database).collection<{ _id: string; version: number }>(
    OUTBOX_COLLECTIONS.heads,
  );
  for (const aggregate of new Set(aggregates)) {
    const head = await guarded(`reading ${heads.namespace}`, () => heads.findOne({ _id: aggregate }));
    for (let from = 1; from <= (head?.version ?? 0); from += LOOK_MAX) {
      const count = Math.min(LOOK_MAX, (head?.version ?? 0) - from + 1);
      yield Array.from({ length: count }, (_, index) => ({ aggregate, version: aggregateVersion(from + index) }));
    }
  }
}

async function* walked(
  { lagMs }: World,
  { ledger, topics }: Producer,
  { selection: { publishedBefore, publishedFrom }, untilMs }: Asked,
): AsyncGenerator<readonly Place[]> {
  const endMs = Math.min(untilMs, publishedBefore?.getTime() ?? untilMs);
  let afterMs = (publishedFrom?.getTime() ?? 0) - 1;
  while (afterMs < endMs) {
    const { rows, toMs } = await ledger.readPublished({ topics, afterMs, lagMs, limit: PAGE, withArchive: true });
    for (let start = 0; start < rows.length; start += LOOK_MAX) yield rows.slice(start, start + LOOK_MAX);
    // `untilMs` is older than the lag, so every page leads on.
    if (toMs <= afterMs) return;
    afterMs = toMs;
  }
}
