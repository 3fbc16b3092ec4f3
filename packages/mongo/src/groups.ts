import { NightporterError, isNightporterError } from '@nightporter/protocol';
import type { ClientSession, Collection, Document, MongoClient } from 'mongodb';
import { OUTBOX_COLLECTIONS } from './collections.js';
import { durableDatabase } from './database.js';
import type { GroupDocument, RegistryDocument } from './documents.js';
import { runTransaction } from './transactions.js';

export interface GroupRegistration {
  readonly group: string;
  readonly topics: readonly string[];
  /** Where the group starts when it is new; `beginning` unless said otherwise. */
  readonly from?: 'beginning' | 'now';
}

const REGISTRY = 'registry';
const ATTEMPTS_MAX = 10;

/**
 * Names a group in the producer's `groups`, so that retention waits for it, and raises the revision of `registry` in the same
 * transaction, so that it conflicts with retention. A group that is registered keeps its watermark; only its topics change. Nothing is
 * written when nothing changes, so it is safe at every start. Rejects with NP_CONFIG_INVALID or NP_STORE_UNAVAILABLE.
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
  for (let attempt = 1; ; attempt += 1) {
    try {
      await runTransaction(client, operation, ({ session, own }) =>
        own(operation, () => register(groups, session, registration)),
      );
      return;
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

async function register(
  groups: Collection<GroupDocument>,
  session: ClientSession,
  { group, topics, from = 'beginning' }: GroupRegistration,
): Promise<void> {
  const wanted = [...new Set(topics)].sort();
  const known = await groups.findOne({ _id: group }, { session });
  if (known !== null && JSON.stringify(known.topics) === JSON.stringify(wanted)) return;
  // The registry first: it is where two registrations, or a registration and retention, meet.
  const registry = groups as unknown as Collection<RegistryDocument>;
  await registry.updateOne({ _id: REGISTRY }, { $inc: { revision: 1 } }, { session, upsert: true });
  const update: Document = { topics: { $literal: wanted }, ...(known === null ? newGroup(from) : {}) };
  await groups.updateOne({ _id: group }, [{ $set: update }], { session, upsert: true });
}

/** From the beginning: live once its watermark has passed what was there when it came. From now: live at once. */
function newGroup(from: 'beginning' | 'now'): Document {
  const floor = '$$NOW';
  const registeredAt = '$$NOW';
  return from === 'now'
    ? { from, floor, state: 'live', watermark: '$$NOW', registeredAt }
    : { from, floor, state: 'bootstrapping', watermark: new Date(0), registeredAt };
}
