import {
  CONSUMER_COLLECTIONS,
  OUTBOX_COLLECTIONS,
  REGISTRY,
  createDatabaseClock,
  durableDatabase,
  guarded,
  recordAction,
  runAction,
  type GroupDocument,
  type Operator,
  type RegistryDocument,
} from '@nightporter/mongo';
import type { ClientSession, Collection, Db, MongoClient } from 'mongodb';
import { assertDecision, invalid } from './requests.js';

export interface GroupRemoval extends Operator {
  readonly client: MongoClient;
  readonly group: string;
  /** The databases of all producers that the group is registered with. */
  readonly producers: readonly string[];
  /** The group's own database: given, what the group knows of every event goes too, for good. */
  readonly dataIn?: string;
  /** The deployment of `dataIn`, where it is another than that of the producers. */
  readonly dataClient?: MongoClient;
  /** Told after each batch of documents. */
  readonly progress?: (deleted: Readonly<Record<DataCollection, number>>) => void;
}

export type DataCollection = 'parked' | 'inbox' | 'positions' | 'started' | 'starts' | 'copies';

export interface GroupRemovalResult {
  /** Databases in which the group was registered. */
  readonly unregistered: readonly string[];
  /** Documents of the group that were deleted. */
  readonly deleted: Readonly<Record<DataCollection, number>>;
}

const BATCH = 200;
/** Positions last: while one is there, its aggregate cannot be mistaken for a new one. */
const DATA: readonly DataCollection[] = ['started', 'starts', 'parked', 'copies', 'inbox', 'positions'];

/**
 * Takes a group out of its producers' `groups`, one recorded transaction each, so that retention no longer waits for it; and, only where
 * `dataIn` is given, deletes its documents in batches. Interrupted, it may be called again. The workers must be stopped: while a member
 * holds the group's sweep (until 30 s after one was killed), and for what is incomplete, it rejects with NP_ACTION_INVALID.
 */
export async function removeGroup(removal: GroupRemoval): Promise<GroupRemovalResult> {
  const { client, dataClient = client, dataIn, group, producers } = removal;
  assertDecision(removal);
  if (group === '' || group === REGISTRY) throw invalid(`group is ${JSON.stringify(group)}; accepted: a group's name.`);
  if (producers.length === 0)
    throw invalid(`no producers of group ${group} are named; accepted: one database or more.`);
  const unregistered: string[] = [];
  for (const producer of producers) if (await unregister(removal, producer)) unregistered.push(producer);
  const deleted = { started: 0, starts: 0, parked: 0, copies: 0, inbox: 0, positions: 0 };
  if (dataIn === undefined) return { unregistered, deleted };
  const database = durableDatabase(dataClient, dataIn);
  for (const name of DATA) {
    for (let count = await deleteBatch(database, name, group); count > 0;) {
      deleted[name] += count;
      removal.progress?.({ ...deleted });
      count = await deleteBatch(database, name, group);
    }
  }
  return { unregistered, deleted };
}

/** False where the group is not registered. */
async function unregister({ client, group, dataIn, by, reason }: GroupRemoval, producer: string): Promise<boolean> {
  const database = durableDatabase(client, producer);
  const operation = `removing group ${group} from ${producer}`;
  const now = await guarded(operation, () => createDatabaseClock(client).read());
  return runAction(client, operation, async (session) => {
    const groups = database.collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
    const known = await groups.findOne({ _id: group }, { session });
    if (known === null) return false;
    assertUnattended(known, now);
    await raiseRegistry(groups, session);
    await groups.deleteOne({ _id: group }, { session });
    const details = {
      topics: known.topics.join(' '),
      state: known.state,
      watermark: known.watermark.toISOString(),
      dataIn: dataIn ?? null,
    };
    await recordAction(database, session, { action: 'remove-group', target: group, by, reason, details });
    return true;
  });
}

function assertUnattended({ _id, sweeper }: GroupDocument, now: Date): void {
  if (sweeper === undefined || sweeper === null || sweeper.until <= now) return;
  const until = sweeper.until.toISOString();
  throw invalid(
    `Group ${_id} has a member, ${sweeper.owner}, that holds its sweep until ${until}; accepted: a group whose workers are stopped.`,
  );
}

/** It is where removals, registrations and retention meet. */
async function raiseRegistry(groups: Collection<GroupDocument>, session: ClientSession): Promise<void> {
  const registry = groups as unknown as Collection<RegistryDocument>;
  await registry.updateOne({ _id: REGISTRY }, { $inc: { revision: 1 } }, { session, upsert: true });
}

async function deleteBatch(database: Db, name: DataCollection, group: string): Promise<number> {
  const documents = database.collection<{ _id: string; group: string }>(CONSUMER_COLLECTIONS[name]);
  const place = `${documents.namespace} of group ${group}`;
  return guarded(`deleting from ${place}`, async () => {
    const batch = await documents
      .find({ group }, { projection: { _id: 1 } })
      .limit(BATCH)
      .toArray();
    if (batch.length === 0) return 0;
    const { deletedCount } = await documents.deleteMany({ _id: { $in: batch.map(({ _id }) => _id) }, group });
    return deletedCount;
  });
}
