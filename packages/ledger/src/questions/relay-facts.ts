import type { OutboxDocument } from '@nightporter/contracts';
import {
  OUTBOX_COLLECTIONS,
  RELAY_COLLECTIONS,
  createDatabaseClock,
  durableDatabase,
  guarded,
  type LeaseDocument,
  type PauseDocument,
} from '@nightporter/mongo';
import type { Place } from './deployment.js';
import type { Neighbour, PauseNote, RelayFacts } from './explain.js';

/** What holds a row back, beside what the row itself says. */
export async function relayFactsOf(
  row: OutboxDocument,
  { producer, relay }: { producer: Place; relay: Place | null },
): Promise<RelayFacts> {
  const isWaiting = row.status !== 'PUBLISHED' && row.status !== 'DEAD';
  return {
    status: row.status,
    form: row.publication?.form ?? (row.skip === null ? 'original' : 'tombstone'),
    retryCount: row.retryCount,
    nextRetryAt: row.nextRetryAt,
    lastError: row.lastError,
    claimedBy: row.claim?.relay ?? null,
    unsettledBefore: isWaiting ? await unsettledBefore(producer, row) : null,
    pauses: isWaiting && relay !== null ? await pausesOf(relay, row.topic) : [],
    holders: isWaiting && relay !== null ? await holdersOf(relay) : relay === null ? null : [],
  };
}

async function unsettledBefore(
  { client, database }: Place,
  { aggregateId, aggregateType, aggregateVersion, slot, source }: OutboxDocument,
): Promise<Neighbour | null> {
  const outbox = durableDatabase(client, database).collection<OutboxDocument>(OUTBOX_COLLECTIONS.outbox);
  const identity = { source, aggregateType, aggregateId };
  const filter = { unsettled: true as const, slot, ...identity, aggregateVersion: { $lt: aggregateVersion } };
  const [first] = await guarded(`reading ${outbox.namespace}`, () =>
    outbox.find(filter).sort({ aggregateVersion: 1 }).limit(1).toArray(),
  );
  return first === undefined ? null : { version: first.aggregateVersion, eventId: first._id, status: first.status };
}

async function pausesOf({ client, database }: Place, topic: string): Promise<readonly PauseNote[]> {
  const controls = durableDatabase(client, database).collection<PauseDocument>(RELAY_COLLECTIONS.controls);
  const found = await guarded(`reading ${controls.namespace}`, () =>
    controls.find({ _id: { $in: ['all', `topic:${topic}`] } }).toArray(),
  );
  return found.map(({ _id, at, by, reason }) => ({ scope: _id === 'all' ? 'all' : topic, by, reason, at }));
}

async function holdersOf({ client, database }: Place): Promise<readonly string[]> {
  const leases = durableDatabase(client, database).collection<LeaseDocument>(RELAY_COLLECTIONS.leases);
  return guarded(`reading ${leases.namespace}`, async () => {
    const now = await createDatabaseClock(client).read();
    const found = await leases.find({}).toArray();
    return [...new Set(found.filter(({ expiresAt }) => expiresAt > now).map(({ owner }) => owner))].sort();
  });
}
