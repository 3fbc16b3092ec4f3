import type { OutboxDocument } from '@nightporter/contracts';
import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  REGISTRY,
  RELAY_COLLECTIONS,
  WAITING_STATES,
  createDatabaseClock,
  createRelayStores,
  durableDatabase,
  engineOf,
  guarded,
  type CheckpointDocument,
  type Engine,
  type GroupDocument,
  type InstanceDocument,
  type LeaseDocument,
  type ParkedDocument,
  type PauseDocument,
  type RepairDocument,
  type WaitingState,
} from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import { placeOfGroup, type Deployment, type GroupPlace, type Place, type ProducerPlace } from './deployment.js';

type UnsettledStatus = Exclude<OutboxDocument['status'], 'PUBLISHED'>;

export interface OutboxStanding {
  readonly producer: string;
  /** By status: how many, and how long ago the oldest was created. */
  readonly unsettled: Readonly<Record<UnsettledStatus, { readonly rows: number; readonly oldestAgeMs: number | null }>>;
  /** Whether there are more than were counted. */
  readonly isCapped: boolean;
  readonly newestPublishedAt: Date | null;
}

export interface ParkedStanding {
  readonly gap: number;
  readonly behind: number;
  readonly retry: number;
  readonly dead: number;
  readonly setAside: number;
  /** Since when the oldest of them waits. */
  readonly oldestParkedAt: Date | null;
}

export interface GroupStandingRow {
  readonly group: string;
  readonly producer: string;
  readonly database: string | null;
  readonly topics: readonly string[];
  readonly state: GroupDocument['state'];
  readonly watermark: Date;
  /** How far what the group has compared with the ledger is behind the database's clock. */
  readonly lagMs: number;
  /** The member that compares; null: nobody does, so no worker of the group runs. */
  readonly sweeper: string | null;
  /** Null where the group's database is not known. */
  readonly parked: ParkedStanding | null;
}

export interface RelayStanding {
  readonly database: string;
  readonly leases: readonly {
    readonly shard: string;
    readonly owner: string;
    readonly epoch: number;
    readonly isAlive: boolean;
    readonly expiresAt: Date;
  }[];
  readonly checkpoints: readonly {
    readonly shard: string;
    readonly epoch: number;
    readonly seq: number;
    readonly hasToken: boolean;
    readonly ageMs: number;
  }[];
  readonly instances: readonly { readonly owner: string; readonly isAlive: boolean }[];
  readonly pauses: readonly PauseDocument[];
  /** The last ones. */
  readonly repairs: readonly RepairDocument[];
}

export interface Status {
  /** By the database's clock. */
  readonly at: Date;
  readonly engine: Engine;
  readonly outboxes: readonly OutboxStanding[];
  readonly groups: readonly GroupStandingRow[];
  readonly relay: RelayStanding | null;
  readonly notKnown: readonly string[];
}

/** Parked messages of a group in one state that are counted at most. */
const PARKED_MAX = 100_000;
const REPAIRS_MAX = 5;

/** How everything stands. Costs what is unsettled and parked, not what was ever published. Rejects with NP_STORE_UNAVAILABLE. */
export async function status(
  deployment: Deployment,
  client: Place['client'],
  { parkedMax = PARKED_MAX }: { readonly parkedMax?: number } = {},
): Promise<Status> {
  return guarded('asking how everything stands', async () => {
    const at = await createDatabaseClock(client).read();
    const outboxes: OutboxStanding[] = [];
    const groups: GroupStandingRow[] = [];
    for (const producer of deployment.producers) {
      outboxes.push(await outboxStanding(producer));
      groups.push(...(await groupStandings(deployment, producer, parkedMax)));
    }
    const relay = deployment.relay === null ? null : await relayStanding(deployment.relay);
    const notKnown = [
      ...(relay === null ? ["The relay's database is not known."] : []),
      ...groups.flatMap(({ database, group }) =>
        database === null ? [`Where group ${group} keeps its data is not known.`] : [],
      ),
    ];
    return { at, engine: await engineOf(client), outboxes, groups, relay, notKnown };
  });
}

export async function outboxStanding({ client, database }: ProducerPlace): Promise<OutboxStanding> {
  const outbox = namespace(`${database}.${OUTBOX_COLLECTIONS.outbox}`);
  const { isCapped, unsettled } = await createRelayStores({ client, database, namespaces: [outbox] }).stats.read();
  const rows = durableDatabase(client, database).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const [newest] = await rows
    .find({ status: 'PUBLISHED' })
    .project<Pick<OutboxDocument, 'publishedAt'>>({ publishedAt: 1 })
    .sort({ publishedAt: -1 })
    .limit(1)
    .toArray();
  return { producer: database, unsettled, isCapped, newestPublishedAt: newest?.publishedAt ?? null };
}

/** The groups that are registered with one producer. */
export async function groupStandings(
  deployment: Deployment,
  { client, database: producer }: ProducerPlace,
  parkedMax = PARKED_MAX,
): Promise<readonly GroupStandingRow[]> {
  const groups = durableDatabase(client, producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const now = await createDatabaseClock(client).read();
  const found = await groups
    .find({ _id: { $ne: REGISTRY } })
    .sort({ _id: 1 })
    .toArray();
  const standings: GroupStandingRow[] = [];
  for (const { _id: group, state, sweeper, topics, watermark } of found) {
    const home = placeOfGroup(deployment, group);
    standings.push({
      group,
      producer,
      database: home?.database ?? null,
      topics,
      state,
      watermark,
      lagMs: Math.max(0, now.getTime() - watermark.getTime()),
      sweeper: sweeper !== undefined && sweeper !== null && sweeper.until > now ? sweeper.owner : null,
      parked: home === null ? null : await parkedStanding(home, parkedMax),
    });
  }
  return standings;
}

/** Each state for itself, on its index: in one count for all, a backlog behind a dead letter would hide the dead letter. */
async function parkedStanding({ client, database, group }: GroupPlace, parkedMax: number): Promise<ParkedStanding> {
  const parked = durableDatabase(client, database).collection<ParkedDocument>(CONSUMER_COLLECTIONS.parked);
  const countOf = async (state: WaitingState) => {
    const [counted] = await parked
      .aggregate<{ readonly rows: number; readonly oldest: Date | null }>([
        { $match: { group, state } },
        { $limit: parkedMax },
        { $group: { _id: null, rows: { $sum: 1 }, oldest: { $min: '$parkedAt' } } },
      ])
      .toArray();
    return { state, rows: counted?.rows ?? 0, oldest: counted?.oldest ?? null };
  };
  const counted = await Promise.all(WAITING_STATES.map(countOf));
  const rowsOf = (state: WaitingState): number => counted.find((one) => one.state === state)?.rows ?? 0;
  const dates = counted.flatMap(({ oldest }) => (oldest === null ? [] : [oldest]));
  return {
    gap: rowsOf('gap'),
    behind: rowsOf('behind'),
    retry: rowsOf('retry'),
    dead: rowsOf('dead'),
    setAside: rowsOf('aside'),
    oldestParkedAt: dates.length === 0 ? null : new Date(Math.min(...dates.map((date) => date.getTime()))),
  };
}

export async function relayStanding({ client, database: name }: Place): Promise<RelayStanding> {
  const database = durableDatabase(client, name);
  const now = await createDatabaseClock(client).read();
  const leases = await database.collection<LeaseDocument>(RELAY_COLLECTIONS.leases).find().sort({ _id: 1 }).toArray();
  const checkpoints = await database
    .collection<CheckpointDocument>(RELAY_COLLECTIONS.checkpoints)
    .find()
    .sort({ _id: 1 })
    .toArray();
  const instances = await database.collection<InstanceDocument>(RELAY_COLLECTIONS.instances).find().toArray();
  const pauses = await database.collection<PauseDocument>(RELAY_COLLECTIONS.controls).find().sort({ _id: 1 }).toArray();
  const repairs = await database
    .collection<RepairDocument>(RELAY_COLLECTIONS.repairs)
    .find()
    .sort({ at: -1 })
    .limit(REPAIRS_MAX)
    .toArray();
  return {
    database: name,
    leases: leases.map(({ _id, epoch, expiresAt, owner }) => ({
      shard: _id,
      owner,
      epoch,
      isAlive: expiresAt > now,
      expiresAt,
    })),
    checkpoints: checkpoints.map(({ _id, epoch, seq, token, updatedAt }) => ({
      shard: _id,
      epoch,
      seq,
      hasToken: token !== null,
      ageMs: Math.max(0, now.getTime() - updatedAt.getTime()),
    })),
    instances: instances.map(({ _id, expiresAt }) => ({ owner: _id, isAlive: expiresAt > now })),
    pauses,
    repairs,
  };
}
