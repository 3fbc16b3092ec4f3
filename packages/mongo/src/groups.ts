import type { ProducerLedger } from '@nightporter/consumer';
import { NightporterError, isNightporterError } from '@nightporter/protocol';
import type { ClientSession, Collection, Document, MongoClient } from 'mongodb';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import type { GroupDocument, RegistryDocument } from './documents.js';
import { atHeads, copyHeads, headsOf } from './head-copies.js';
import { createProducerLedger } from './producer-ledger.js';
import { behindDeleted, startUnavailable, type DeletedTopic } from './unavailable-starts.js';
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
const ATTEMPTS_MAX = 10;

/**
 * Names a group in the producer's `groups`, so that retention waits for it and its sweep finds its watermark, and raises the revision of
 * `registry` in the same transaction, so that it conflicts with retention. A group that is registered keeps its start and its watermark;
 * where topics are added, its watermark goes back to its start, since nothing of them was compared yet. Nothing is written when nothing
 * changes, so it is safe at every start; receive only afterwards. Rejects with NP_CONFIG_INVALID, NP_GROUP_START_UNAVAILABLE or
 * NP_STORE_UNAVAILABLE.
 */
export async function registerGroup(
  client: MongoClient,
  producerDatabase: string,
  registration: GroupRegistration,
): Promise<void> {
  const { group, topics } = registration;
  if (group === '' || group === REGISTRY || topics.length === 0) {
    const given = `Group ${JSON.stringify(group)} with topics [${topics.join(', ')}]`;
    const message = `${given} cannot be registered: it needs a topic, and a name other than "" and "${REGISTRY}".`;
    throw new NightporterError('NP_CONFIG_INVALID', message);
  }
  const groups = durableDatabase(client, producerDatabase).collection<GroupDocument>(OUTBOX_COLLECTIONS.groups);
  const operation = `registering group ${group} in ${groups.namespace}`;
  const ledger = registration.ledger ?? createProducerLedger({ client, database: producerDatabase });
  const heads = headsOf(client, producerDatabase);
  const { deleted, isPreparing } = await untilNoConflict(operation, () =>
    runTransaction(client, operation, ({ session, own }) =>
      own(operation, () => register(groups, session, registration)),
    ),
  );
  if (isPreparing) throw replayUnfinished(group, groups.namespace);
  if (deleted.length > 0) throw await startUnavailable({ heads, ledger, group, deleted });
  if (registration.database === undefined) return;
  const startOf = registration.from === 'now' ? atHeads : behindDeleted(ledger);
  const { database } = registration;
  await copyHeads({ client, heads, producerDatabase, groups, group, database, startOf, repeat: untilNoConflict });
}

/** Runs a transaction again when it lost to a concurrent one. */
export async function untilNoConflict<Result>(operation: string, run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await run();
    } catch (error) {
      if (!isNightporterError(error, 'NP_TRANSACTION_CONFLICT')) throw error;
      if (attempt === ATTEMPTS_MAX) {
        throw new NightporterError('NP_STORE_UNAVAILABLE', `${operation}: ${ATTEMPTS_MAX} conflicts in a row`, {
          cause: error,
        });
      }
    }
  }
}

interface Refusal {
  /** Topics of which retention has deleted something. */
  readonly deleted: readonly DeletedTopic[];
  readonly isPreparing: boolean;
}

/** Returns what keeps the group from being registered. */
async function register(
  groups: Collection<GroupDocument>,
  session: ClientSession,
  registration: GroupRegistration,
): Promise<Refusal> {
  const { group, topics, from = 'beginning' } = registration;
  const wanted = [...new Set(topics)].sort();
  const known = await groups.findOne({ _id: group }, { session });
  if (known?.replay?.state === 'preparing') return { deleted: [], isPreparing: true };
  if (known !== null && JSON.stringify(known.topics) === JSON.stringify(wanted)) return NO_REFUSAL;
  const registry = groups as unknown as Collection<RegistryDocument>;
  const added = wanted.filter((topic) => known?.topics.includes(topic) !== true);
  const isFromBeginning = (known?.from ?? from) === 'beginning';
  const deleted = isFromBeginning ? deletedOf(await registry.findOne({ _id: REGISTRY }, { session }), added) : [];
  const isAccepted = registration.from !== 'now' && registration.unavailable === 'accept';
  if (deleted.length > 0 && !isAccepted) return { deleted, isPreparing: false };
  // The registry before the group: it is where two registrations, or a registration and retention, meet.
  await registry.updateOne({ _id: REGISTRY }, { $inc: { revision: 1 } }, { session, upsert: true });
  const changes = known === null ? newGroup(from) : changedGroup(known, wanted);
  const copying = deleted.length > 0 ? { copyingHeads: true } : {};
  const update: Document = { topics: { $literal: wanted }, ...changes, ...copying };
  await groups.updateOne({ _id: group }, [{ $set: update }], { session, upsert: true });
  return NO_REFUSAL;
}

const NO_REFUSAL: Refusal = { deleted: [], isPreparing: false };

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
