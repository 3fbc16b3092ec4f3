import type { OutboxHeadDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  createLedgerRows,
  durableDatabase,
  guarded,
  placeId,
  positionId,
  versionOf,
  type InboxDocument,
  type ParkedDocument,
  type PositionDocument,
  type UnreadableFile,
} from '@nightporter/mongo';
import { aggregateIdentity, type AggregateKey } from '@nightporter/protocol';
import { invalid } from '../requests.js';
import type { EventSummary } from './contract.js';
import type { Deployment, GroupPlace, ProducerPlace } from './deployment.js';
import { registrationsOf, summaryOf } from './timeline.js';

export const HISTORY_LIMIT_MAX = 500;

export interface HistoryEntry {
  readonly version: number;
  /** Null: committed, and in neither outbox nor archive any more, or in an archive that cannot be read from here, as `notKnown` says then. */
  readonly event: EventSummary | null;
  /** What each group has made of it: an outcome, `parked: <state>`, `before-start`, `past` (its record is not there any more), or `missing`. */
  readonly groups: Readonly<Record<string, string>>;
}

export interface AggregateHistory {
  readonly aggregate: AggregateKey;
  /** The producer's database that has its head; null where none that was looked at has. */
  readonly producer: string | null;
  /** How many events were committed. */
  readonly headVersion: number;
  readonly positions: Readonly<Record<string, { readonly version: number; readonly state: string } | null>>;
  readonly entries: readonly HistoryEntry[];
  /** To ask for what follows; null at the end. */
  readonly next: number | null;
  readonly notKnown: readonly string[];
}

export interface HistoryPage {
  /** Only versions above it. Default 0. */
  readonly afterVersion?: number;
  /** Versions at most. Default 100, most {@link HISTORY_LIMIT_MAX}. */
  readonly limit?: number;
}

/** Every version of an aggregate, and what became of it in each group. Rejects with NP_ACTION_INVALID or NP_STORE_UNAVAILABLE. */
export async function aggregateHistory(
  deployment: Deployment,
  aggregate: AggregateKey,
  { afterVersion = 0, limit = 100 }: HistoryPage = {},
): Promise<AggregateHistory> {
  assertPage(aggregate, { afterVersion, limit });
  const owner = await ownerOf(deployment, aggregate);
  if (owner === null) {
    const notKnown = [`None of ${deployment.producers.map(({ database }) => database).join(', ')} has a head of it.`];
    return { aggregate, producer: null, headVersion: 0, positions: {}, entries: [], next: null, notKnown };
  }
  const { headVersion, producer } = owner;
  const last = Math.min(headVersion, afterVersion + limit);
  const { rows, unreadable } = await createLedgerRows(producer).readAggregate(aggregate, { afterVersion, limit });
  const events = new Map(
    rows.map(({ document, place }) => [
      document.aggregateVersion as number,
      summaryOf(document, { producer: producer.database, place }),
    ]),
  );
  const versions = Array.from({ length: Math.max(0, last - afterVersion) }, (_, index) => afterVersion + 1 + index);
  const { groups, notKnown: unplaced } = await groupsOf(deployment, producer, [...events.values()]);
  const notKnown = [
    ...unreadable.map(unreadableNote),
    ...(events.size === 0 ? unreadGroups(unreadable) : []),
    ...unplaced,
  ];
  const views = await Promise.all(groups.map((home) => viewOf(home, aggregate, versions)));
  const entries = versions.map((version): HistoryEntry => ({
    version,
    event: events.get(version) ?? null,
    groups: Object.fromEntries(views.map((view) => [view.group, view.outcomeOf(version)])),
  }));
  const positions = Object.fromEntries(views.map(({ group, position }) => [group, position]));
  const next = last < headVersion ? last : null;
  return { aggregate, producer: producer.database, headVersion, positions, entries, next, notKnown };
}

function assertPage(aggregate: AggregateKey, { afterVersion, limit }: Required<HistoryPage>): void {
  const parts = Object.values(aggregateIdentity(aggregate));
  if (aggregate.split('/').length !== 3 || parts.includes('')) {
    throw invalid(`${JSON.stringify(aggregate)} is no aggregate; accepted: source/type/id, percent-encoded.`);
  }
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > HISTORY_LIMIT_MAX)
    throw invalid(`limit is ${limit}; accepted: a whole number from 1 to ${HISTORY_LIMIT_MAX}.`);
  if (!Number.isSafeInteger(afterVersion) || afterVersion < 0)
    throw invalid(`afterVersion is ${afterVersion}; accepted: a whole number from 0 on.`);
}

async function ownerOf(
  { producers }: Deployment,
  aggregate: AggregateKey,
): Promise<{ readonly producer: ProducerPlace; readonly headVersion: number } | null> {
  for (const producer of producers) {
    const database = durableDatabase(producer.client, producer.database);
    const heads = database.collection<OutboxHeadDocument>(OUTBOX_COLLECTIONS.heads);
    const head = await guarded(`reading ${heads.namespace}`, () => heads.findOne({ _id: aggregate }));
    if (head !== null) return { producer, headVersion: head.version };
  }
  return null;
}

/** The groups that are registered for the topics of the events on the page, as far as their places are known. */
async function groupsOf(
  deployment: Deployment,
  producer: ProducerPlace,
  events: readonly EventSummary[],
): Promise<{ readonly groups: readonly GroupPlace[]; readonly notKnown: readonly string[] }> {
  const names = new Set<string>();
  for (const topic of new Set(events.map((event) => event.topic)))
    for (const group of (await registrationsOf(producer, topic)).keys()) names.add(group);
  const groups = deployment.groups.filter(({ group }) => names.has(group));
  const placed = new Set(groups.map(({ group }) => group));
  const unplaced = [...names].filter((group) => !placed.has(group)).sort();
  return { groups, notKnown: unplaced.map((group) => `Where group ${group} keeps its data is not known.`) };
}

function unreadableNote({ places, reason }: UnreadableFile): string {
  const versions = places.map(versionOf).sort((left, right) => left - right);
  const [first = 0, last = first] = [versions[0], versions.at(-1)];
  return `${first === last ? `Version ${first} is` : `${versions.length} versions from ${first} to ${last} are`} not told: ${reason}`;
}

/** The groups are those of the events' topics. */
function unreadGroups(unreadable: readonly UnreadableFile[]): readonly string[] {
  return unreadable.length === 0
    ? []
    : ['Which groups read it is not known, since none of these versions can be read.'];
}

interface View {
  readonly group: string;
  readonly position: { readonly version: number; readonly state: string } | null;
  outcomeOf(version: number): string;
}

async function viewOf(
  { client, database: name, group }: GroupPlace,
  aggregate: AggregateKey,
  versions: readonly number[],
): Promise<View> {
  const database = durableDatabase(client, name);
  const ids = versions.map((version) => placeId(group, aggregate, version));
  return guarded(`reading ${aggregate} in group ${group} of ${name}`, async () => {
    const positions = database.collection<PositionDocument>(CONSUMER_COLLECTIONS.positions);
    const inbox = database.collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
    const parked = database.collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
    const position = await positions.findOne({ _id: positionId(group, aggregate) });
    const waiting = await parked.find({ _id: { $in: ids } }).toArray();
    const settled = await inbox.find({ _id: { $in: ids } }).toArray();
    const outcomes = new Map<number, string>([
      ...waiting.map(({ state, version }) => [version, `parked: ${state}`] as const),
      ...settled.map(({ outcome, version }) => [version, outcome] as const),
    ]);
    return {
      group,
      position: position === null ? null : { version: position.version, state: position.state },
      outcomeOf: (version) => {
        const known = outcomes.get(version);
        if (known !== undefined) return known;
        if (version <= (position?.startVersion ?? 0)) return 'before-start';
        return version <= (position?.version ?? 0) ? 'past' : 'missing';
      },
    };
  });
}
