import type { ProducerLedger } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import type { ClientSession, Collection, Document, MongoClient } from 'mongodb';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { untilNoConflict } from './conflicts.js';
import { durableDatabase } from './database.js';
import type { GroupDocument, RegistryDocument } from './documents.js';
import { guarded } from './driver-errors.js';
import { COPYING_ENDS, copyHeads, headsOf } from './head-copies.js';
import { createProducerLedger } from './producer-ledger.js';
import {
  additionUnavailable,
  startUnavailable,
  startsOf,
  type DeletedTopic,
  type StartKind,
} from './unavailable-starts.js';
import { runTransaction } from './transactions.js';

/**
 * Where a new group starts. `now`: events up to the heads of the moment count as before its start. `beginning`: refused where retention has
 * deleted events of its topics, unless that is accepted: then what is gone counts as before its start, and its positions say so.
 */
type Start =
  | { readonly from?: 'beginning'; readonly database?: string; readonly unavailable?: 'refuse' }
  | { readonly from?: 'beginning'; readonly database: string; readonly unavailable: 'accept' }
  | {
      readonly from: 'now';
      /** The group's own database, on the same cluster, in which its positions are set to the heads. */
      readonly database: string;
    };

export type GroupRegistration = Start & {
  readonly group: string;
  readonly topics: readonly string[];
  /** The producer's, which tells what is gone; by default its outbox and its archive collections. */
  readonly ledger?: ProducerLedger;
};

/** `_id` of the document in `groups` at which registrations and retention meet. */
export const REGISTRY = 'registry';

/**
 * Names a group in the producer's `groups`, so that retention waits for it and its sweep finds its watermark, and raises the revision of
 * `registry` in the same transaction, so that it conflicts with retention. A group that is registered keeps its start and its watermark;
 * where topics are added, its watermark goes back to its start, since nothing of them was compared yet. Nothing is written when nothing
 * changes, so it is safe at every start; receive only afterwards. Rejects with NP_CONFIG_INVALID, NP_GROUP_START_UNAVAILABLE or
 * NP_STORE_UNAVAILABLE. Tells what it has taken away, since another version of a worker may still read that.
 */
export async function registerGroup(
  client: MongoClient,
  producerDatabase: string,
  registration: GroupRegistration,
): Promise<Registered> {
  const registered = await name(client, producerDatabase, registration);
  if (registration.database === undefined) return registered;
  const groups = groupsOf(client, producerDatabase);
  const { database, group } = registration;
  // A start that was interrupted is completed as it was begun, whatever is configured now.
  const standing = await guarded(`reading group ${group}`, () => groups.findOne({ _id: group, copyingHeads: true }));
  if (standing === null) return registered;
  const kind = standing.from === 'now' ? 'at-heads' : 'behind-deleted';
  const startOf = startsOf(kind, ledgerOf(client, producerDatabase, registration));
  const heads = headsOf(client, producerDatabase);
  await copyHeads({ client, heads, producerDatabase, groups, group, database, startOf, repeat: untilNoConflict });
  return registered;
}

export interface Registered {
  /** Topics that the group's entry had, and no longer has: nothing of them is swept, nor kept for the group. */
  readonly topicsRemoved: readonly string[];
}

/** A registration of a group whose database is out of reach: whoever holds that sets the positions, and then calls {@link endStart}. */
export interface RemoteRegistration {
  readonly group: string;
  readonly topics: readonly string[];
  readonly from: 'beginning' | 'now';
  readonly unavailable: 'refuse' | 'accept';
  readonly ledger?: ProducerLedger;
}

/** A start that is not finished; `sinceMs` tells it from other starts of the group. */
export interface UnfinishedStart {
  readonly sinceMs: number;
  readonly starts: StartKind;
}

/** As {@link registerGroup}, but for the positions; `starting` is null where there are none to set. */
export async function registerRemoteGroup(
  client: MongoClient,
  producerDatabase: string,
  { from, group, topics, unavailable, ledger }: RemoteRegistration,
): Promise<Registered & { readonly starting: UnfinishedStart | null }> {
  const asked = { group, topics, unavailable, ...(ledger === undefined ? {} : { ledger }) };
  const registered = await name(client, producerDatabase, { ...asked, from });
  const groups = groupsOf(client, producerDatabase);
  const known = await guarded(`reading group ${group}`, () => groups.findOne({ _id: group, copyingHeads: true }));
  if (known === null) return { ...registered, starting: null };
  const starts = known.from === 'now' ? 'at-heads' : 'behind-deleted';
  return { ...registered, starting: { sinceMs: known.floor.getTime(), starts } };
}

/** Says that the positions of a start are set. Without effect where that is said already, or another start has begun. */
export async function endStart(
  client: MongoClient,
  producerDatabase: string,
  { group, sinceMs }: { group: string; sinceMs: number },
): Promise<void> {
  const groups = groupsOf(client, producerDatabase);
  await guarded(`ending the start of group ${group} in ${groups.namespace}`, () =>
    groups.updateOne({ _id: group, copyingHeads: true, floor: new Date(sinceMs) }, COPYING_ENDS),
  );
}

function groupsOf(client: MongoClient, producerDatabase: string): Collection<GroupDocument> {
  return durableDatabase(client, producerDatabase).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
}

function ledgerOf(
  client: MongoClient,
  database: string,
  { ledger }: { readonly ledger?: ProducerLedger },
): ProducerLedger {
  return ledger ?? createProducerLedger({ client, database });
}

type Naming = Omit<RemoteRegistration, 'from' | 'unavailable'> &
  Partial<Pick<RemoteRegistration, 'from' | 'unavailable'>>;

/** Writes the group's entry, or rejects. */
async function name(client: MongoClient, producerDatabase: string, registration: Naming): Promise<Registered> {
  const { group, topics } = registration;
  if (group === '' || group === REGISTRY || topics.length === 0) {
    const given = `Group ${JSON.stringify(group)} with topics [${topics.join(', ')}]`;
    const message = `${given} cannot be registered: it needs a topic, and a name other than "" and "${REGISTRY}".`;
    throw new NightporterError('NP_CONFIG_INVALID', message);
  }
  const groups = groupsOf(client, producerDatabase);
  const operation = `registering group ${group} in ${groups.namespace}`;
  const ledger = ledgerOf(client, producerDatabase, registration);
  const heads = headsOf(client, producerDatabase);
  const { deleted, isPreparing, known, topicsRemoved } = await untilNoConflict(operation, () =>
    runTransaction(client, operation, ({ session, own }) =>
      own(operation, () => register(groups, session, registration)),
    ),
  );
  if (isPreparing) throw replayUnfinished(group, groups.namespace);
  if (deleted.length > 0 && known?.from === 'now') throw additionUnavailable(known, deleted);
  if (deleted.length > 0) throw await startUnavailable({ heads, ledger, group, deleted });
  return { topicsRemoved };
}

interface Outcome extends Registered {
  /** Topics of which retention has deleted something that the group would have to see. */
  readonly deleted: readonly DeletedTopic[];
  readonly isPreparing: boolean;
  /** The entry as it was. */
  readonly known: GroupDocument | null;
}

/** Registers the group, or returns what keeps it from being registered. */
async function register(
  groups: Collection<GroupDocument>,
  session: ClientSession,
  registration: Naming,
): Promise<Outcome> {
  const { group, topics, from = 'beginning' } = registration;
  const wanted = [...new Set(topics)].sort();
  const known = await groups.findOne({ _id: group }, { session });
  const unchanged: Outcome = { deleted: [], isPreparing: false, known, topicsRemoved: [] };
  if (known?.replay?.state === 'preparing') return { ...unchanged, isPreparing: true };
  if (known !== null && JSON.stringify(known.topics) === JSON.stringify(wanted)) return unchanged;
  const registry = groups as unknown as Collection<RegistryDocument>;
  const added = wanted.filter((topic) => known?.topics.includes(topic) !== true);
  const sees = seesFrom(known, from);
  const gone = deletedOf(await registry.findOne({ _id: REGISTRY }, { session }), added);
  const deleted = gone.filter(({ until }) => sees !== null && until > sees);
  const isAccepted = (known?.from ?? from) === 'beginning' && registration.unavailable === 'accept';
  if (deleted.length > 0 && !isAccepted) return { ...unchanged, deleted };
  // The registry before the group: it is where two registrations, or a registration and retention, meet.
  await registry.updateOne({ _id: REGISTRY }, { $inc: { revision: 1 } }, { session, upsert: true });
  const changes = known === null ? newGroup(from) : changedGroup(known, wanted);
  const copying = deleted.length > 0 ? { copyingHeads: true } : {};
  const update: Document = { topics: { $literal: wanted }, ...changes, ...copying };
  await groups.updateOne({ _id: group }, [{ $set: update }], { session, upsert: true });
  return { ...unchanged, topicsRemoved: known?.topics.filter((topic) => !wanted.includes(topic)) ?? [] };
}

/** From when on the group must see what was published; null where that is nothing of before. */
function seesFrom(known: GroupDocument | null, from: 'beginning' | 'now'): Date | null {
  if ((known?.from ?? from) === 'beginning') return new Date(0);
  return known?.registeredAt ?? null;
}

export function replayUnfinished(group: string, place: string): NightporterError {
  return new NightporterError(
    'NP_REPLAY_UNFINISHED',
    `Group ${group} in ${place} is being prepared by a replay that has not finished. Accepted: the same replay again, which completes ` +
      'it, or removing the group with its data.',
  );
}

function deletedOf(registry: RegistryDocument | null, topics: readonly string[]): readonly DeletedTopic[] {
  return topics.flatMap((topic) => {
    const until = registry?.deletedTo?.[topic];
    return until === undefined ? [] : [{ topic, until }];
  });
}

/** From the beginning: live once its watermark has passed what was there when it came. From now: once its positions are at the heads. */
function newGroup(from: 'beginning' | 'now'): Document {
  const started = { from, floor: '$$NOW', state: 'bootstrapping', registeredAt: '$$NOW', sweeper: null };
  return from === 'now'
    ? { ...started, watermark: '$$NOW', copyingHeads: true }
    : { ...started, watermark: new Date(0) };
}

function changedGroup(known: GroupDocument, wanted: readonly string[]): Document {
  if (wanted.every((topic) => known.topics.includes(topic))) return {};
  const watermark = known.from === 'now' ? known.registeredAt : new Date(0);
  return { state: 'bootstrapping', floor: '$$NOW', watermark };
}
