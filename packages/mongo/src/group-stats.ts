import type { MongoClient } from 'mongodb';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import type { GroupDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { groupCollections } from './group-collections.js';

/** Messages of a group in one state that are counted at most: a backlog is no reason to read it whole at every scrape. */
const COUNTED_MAX = 10_000;

export const WAITING_STATES = ['gap', 'behind', 'retry', 'dead', 'aside'] as const;

/** `aside`: kept without a place in any sequence, unreadable or a version conflict, and not dismissed. */
export type WaitingState = (typeof WAITING_STATES)[number];

export interface WaitingFigures {
  readonly rows: number;
  /** Since it was parked, by the database's clock; null where there is none. */
  readonly oldestAgeMs: number | null;
}

export interface StandingFigures {
  /** Database of the producer. */
  readonly producer: string;
  readonly state: 'bootstrapping' | 'live';
  /** How far the watermark is behind the producer's database clock: whatever was published before is settled or parked. */
  readonly watermarkAgeMs: number;
  /** On the producer's database clock. */
  readonly registeredAtMs: number;
}

export interface GroupFigures {
  readonly waiting: Readonly<Record<WaitingState, WaitingFigures>>;
  /** Of some state there are more than were counted: what is told of that one is a lower bound. */
  readonly isCapped: boolean;
  /** Producers with which the group is not registered are missing. */
  readonly standings: readonly StandingFigures[];
}

/** Figures of one group, for people and alarms; nothing is decided by them. One call costs a bounded read of `parked` and one document for each producer. */
export interface GroupStats {
  read(): Promise<GroupFigures>;
}

export interface GroupStatsOptions {
  readonly client: MongoClient;
  /** The consumer's own database. */
  readonly database: string;
  readonly group: string;
  /** Databases of the producers that it reads. */
  readonly producers: readonly string[];
  /** Messages in each state that are counted at most. Default 10,000. */
  readonly countedMax?: number;
}

export function createGroupStats(options: GroupStatsOptions): GroupStats {
  const { client, countedMax = COUNTED_MAX, group, producers } = options;
  return {
    read: () =>
      guarded(`counting what group ${group} has parked`, async () => {
        const counted = await Promise.all(
          WAITING_STATES.map((state) => countWaiting({ ...options, countedMax, state })),
        );
        const standings = await Promise.all(producers.map((producer) => standingOf(client, { producer, group })));
        const isCapped = counted.some(({ rows }) => rows >= countedMax);
        return { waiting: waitingOf(counted), isCapped, standings: standings.filter((one) => one !== null) };
      }),
  };
}

interface Counted {
  readonly state: WaitingState;
  readonly rows: number;
  readonly oldestAgeMs: number | null;
}

/** By the database's clock. Both dates as numbers, see leases.ts. */
function ageMs(date: string): object {
  return { $toDouble: { $subtract: [{ $toLong: '$$NOW' }, { $toLong: date }] } };
}

/**
 * Each state for itself, on the index of what is due: in one count for all, a backlog behind a dead letter would hide the dead letter.
 * What has no place in a sequence was never parked; it has failed from the start.
 */
async function countWaiting({
  client,
  countedMax,
  database,
  group,
  state,
}: GroupStatsOptions & { readonly countedMax: number; readonly state: WaitingState }): Promise<Counted> {
  const { parked } = groupCollections(durableDatabase(client, database));
  const [counted] = await parked
    .aggregate<WaitingFigures>([
      { $match: { group, state } },
      { $limit: countedMax },
      { $group: { _id: null, rows: { $sum: 1 }, oldest: { $min: { $ifNull: ['$parkedAt', '$firstFailedAt'] } } } },
      { $project: { rows: 1, oldestAgeMs: ageMs('$oldest') } },
    ])
    .toArray();
  return { state, rows: counted?.rows ?? 0, oldestAgeMs: counted?.oldestAgeMs ?? null };
}

function waitingOf(counted: readonly Counted[]): GroupFigures['waiting'] {
  const figuresOf = (state: WaitingState): WaitingFigures => {
    const { rows = 0, oldestAgeMs = null } = counted.find((one) => one.state === state) ?? {};
    return { rows, oldestAgeMs: oldestAgeMs === null ? null : Math.max(0, oldestAgeMs) };
  };
  return {
    gap: figuresOf('gap'),
    behind: figuresOf('behind'),
    retry: figuresOf('retry'),
    dead: figuresOf('dead'),
    aside: figuresOf('aside'),
  };
}

async function standingOf(
  client: MongoClient,
  { producer, group }: { producer: string; group: string },
): Promise<StandingFigures | null> {
  const groups = durableDatabase(client, producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const [found] = await groups
    .aggregate<Pick<GroupDocument, 'state' | 'registeredAt'> & { ageMs: number }>([
      { $match: { _id: group } },
      { $project: { state: 1, registeredAt: 1, ageMs: ageMs('$watermark') } },
    ])
    .toArray();
  if (found === undefined) return null;
  const { ageMs: watermarkAgeMs, registeredAt, state } = found;
  return { producer, state, watermarkAgeMs: Math.max(0, watermarkAgeMs), registeredAtMs: registeredAt.getTime() };
}
