import {
  OUTBOX_COLLECTIONS,
  createDatabaseClock,
  createGroupStores,
  createProducerLedger,
  durableDatabase,
  guarded,
  REGISTRY,
  type GroupDocument,
  type GroupStores,
} from '@nightporter/mongo';
import type { Collection } from 'mongodb';
import { INBOX_RETENTION_MS } from '../questions/inbox-retention.js';
import { invalid } from '../requests.js';
import type { Into, ProducerLedger, ReplayOptions } from './contract.js';

export interface Producer {
  readonly database: string;
  readonly topics: readonly string[];
  readonly ledger: ProducerLedger;
  readonly groups: Collection<GroupDocument>;
}

export interface World extends Pick<ReplayOptions, 'client' | 'database' | 'group'> {
  readonly producers: readonly Producer[];
  readonly store: GroupStores['store'];
  readonly clock: ReturnType<typeof createDatabaseClock>;
  readonly inboxRetentionMs: number;
  readonly lagMs: number;
  readonly eventsMax: number;
}

/** Throws NP_ACTION_INVALID for an option that is out of range. */
export function worldOf(options: ReplayOptions): World {
  const { client, database, group, eventsMax = 100_000, lagMs = 10_000 } = options;
  const { inboxRetentionMs = INBOX_RETENTION_MS } = options;
  if (group === REGISTRY) throw invalid(`group is ${JSON.stringify(group)}; accepted: a group's name.`);
  if (options.producers.length === 0) throw invalid(`no producers of group ${group} are named; accepted: one or more.`);
  for (const { database: producer, topics } of options.producers) {
    if (topics.length === 0) throw invalid(`no topics of ${producer} are named; accepted: one or more.`);
  }
  assertWhole('lagMs', lagMs, { min: 0, max: 600_000 });
  assertWhole('eventsMax', eventsMax, { min: 1, max: 10_000_000 });
  return {
    client,
    database,
    group,
    inboxRetentionMs,
    lagMs,
    eventsMax,
    clock: createDatabaseClock(client),
    store: createGroupStores({ client, database, group, inboxRetentionMs }).store,
    producers: options.producers.map(({ database: producer, ledger, topics }) => ({
      database: producer,
      topics,
      ledger: ledger ?? createProducerLedger({ client, database: producer }),
      groups: durableDatabase(client, producer).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups),
    })),
  };
}

function assertWhole(name: string, value: number, { min, max }: { min: number; max: number }): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw invalid(`${name} of the replay is ${value}; accepted: a whole number from ${min} to ${max}.`);
}

/** How the group stands with each producer, null where it is not registered. Rejects with NP_ACTION_INVALID where it is not as asked for. */
export async function standingsOf(
  { group, producers }: World,
  into: Into,
): Promise<ReadonlyMap<Producer, GroupDocument | null>> {
  const standings = new Map<Producer, GroupDocument | null>();
  for (const producer of producers) {
    const { groups } = producer;
    const found = await guarded(`reading ${groups.namespace}`, () => groups.findOne({ _id: group }));
    standings.set(producer, found);
  }
  const known = [...standings.values()].filter((standing) => standing !== null);
  const isNew = standings.size > known.length || known.some(({ replay }) => replay?.state === 'preparing');
  if (into === 'what-is-missing' && isNew) {
    throw invalid(
      `Group ${group} is not registered with all producers named; accepted: a registered group, or into: 'new-group'.`,
    );
  }
  if (into === 'new-group' && (!isNew || known.some(({ replay }) => replay === undefined))) {
    throw invalid(
      `Group ${group} is registered; accepted: a new name, such as a generation, or into: 'what-is-missing'.`,
    );
  }
  return standings;
}
