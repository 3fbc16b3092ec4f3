import type { AggregateKey } from '@nightporter/protocol';
import type { ClientSession, Collection, MongoClient } from 'mongodb';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { untilNoConflict } from './conflicts.js';
import { durableDatabase } from './database.js';
import type { GroupDocument, RegistryDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { REGISTRY, replayUnfinished } from './groups.js';
import { copyHeads, headsOf } from './head-copies.js';
import { runTransaction } from './transactions.js';

export interface ReplayGroup {
  readonly client: MongoClient;
  readonly producerDatabase: string;
  readonly group: string;
  readonly topics: readonly string[];
  /** The group's own database. */
  readonly database: string;
  /** What is replayed, as text: only the same replay may go on with a group that is being prepared. */
  readonly selection: string;
}

/**
 * Registers a new group that a replay prepares, as one that starts now, and returns when that was, by the database's clock. Until
 * {@link finishReplayGroup} workers are refused, and its watermark stands at the beginning, so that retention keeps what is to be replayed.
 * Called again it returns the same. Rejects with NP_REPLAY_UNFINISHED where another replay has begun.
 */
export async function registerReplayGroup(replay: ReplayGroup): Promise<{ readonly floorMs: number }> {
  const { client, group } = replay;
  const groups = groupsOf(replay);
  const operation = `registering group ${group} in ${groups.namespace} for a replay`;
  const registered = await untilNoConflict(operation, () =>
    runTransaction(client, operation, ({ session, own }) => own(operation, () => register(groups, session, replay))),
  );
  if (registered.replay?.selection !== replay.selection) throw replayUnfinished(group, groups.namespace);
  return { floorMs: registered.floor.getTime() };
}

async function register(
  groups: Collection<GroupDocument>,
  session: ClientSession,
  { group, selection, topics }: ReplayGroup,
): Promise<GroupDocument> {
  const known = await groups.findOne({ _id: group }, { session });
  if (known !== null) return known;
  const registry = groups as unknown as Collection<RegistryDocument>;
  await registry.updateOne({ _id: REGISTRY }, { $inc: { revision: 1 } }, { session, upsert: true });
  const made = {
    topics: { $literal: [...new Set(topics)].sort() },
    from: 'now',
    floor: '$$NOW',
    registeredAt: '$$NOW',
    state: 'bootstrapping',
    sweeper: null,
    watermark: new Date(0),
    copyingHeads: true,
    replay: { state: 'preparing', selection: { $literal: selection } },
  };
  await groups.updateOne({ _id: group }, [{ $set: made }], { session, upsert: true });
  const registered = await groups.findOne({ _id: group }, { session });
  if (registered === null) throw new Error(`Group ${group} is not there after its insert.`);
  return registered;
}

/** Sets every position of the group to its head, or, where there is one, to right before the first version that is replayed. */
export function copyReplayStarts(replay: ReplayGroup, firsts: ReadonlyMap<AggregateKey, number>): Promise<void> {
  const { client, database, group, producerDatabase } = replay;
  return copyHeads({
    client,
    database,
    group,
    groups: groupsOf(replay),
    heads: headsOf(client, producerDatabase),
    producerDatabase,
    repeat: untilNoConflict,
    startOf: (batch) =>
      Promise.resolve(
        batch.map(({ _id, version }) => {
          const aggregate = _id as AggregateKey;
          const first = firsts.get(aggregate);
          return { aggregate, version: first === undefined ? version : first - 1 };
        }),
      ),
  });
}

/** Lets workers start: what was published up to the registration is parked or before the start, and the sweep goes on from there. */
export async function finishReplayGroup(replay: ReplayGroup): Promise<void> {
  const { group } = replay;
  const groups = groupsOf(replay);
  await guarded(`finishing the replay into group ${group} in ${groups.namespace}`, async () => {
    const preparing = { _id: group, 'replay.state': 'preparing' as const };
    await groups.updateOne(preparing, [{ $set: { watermark: '$floor', 'replay.state': 'ready' } }]);
  });
}

function groupsOf({ client, producerDatabase }: ReplayGroup): Collection<GroupDocument> {
  return durableDatabase(client, producerDatabase).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
}
