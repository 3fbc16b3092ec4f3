import {
  OUTBOX_COLLECTIONS,
  createOutboxActions,
  createRelayStores,
  ensureOutboxCollections,
  ensureRelayCollections,
  pauseRelay,
  resumeRelay,
  type RelayStores,
} from '@nightporter/mongo';
import { namespace, resumeToken, type EventId, type Namespace } from '@nightporter/protocol';
import {
  captureConformance,
  checkpointStoreConformance,
  instanceRegistryConformance,
  leaseStoreConformance,
  outboxActionsConformance,
  outboxMarkerConformance,
  outboxReaderConformance,
  outboxStatsConformance,
  pollingConformance,
  relayControlsConformance,
  repairLogConformance,
  shardMapStoreConformance,
  type MarkerFixture,
  type OutboxFixture,
  type PollingFixture,
  type StatsFixture,
} from '@nightporter/testing/conformance';
import type { OutboxRow } from '@nightporter/contracts';
import type { RepairRecord } from '@nightporter/relay';
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedDatabase } from './mongo-database.js';
import { commitSamples, databaseOf, outboxOf } from './mongo-samples.js';

const database = sharedDatabase();
const passTime = async (byMs: number): Promise<void> => {
  await sleep(byMs);
};

/** Longer than the slowest test needs between a claim and reading it. */
const CLAIM_MS = 4_000;

interface Outboxes extends OutboxFixture {
  readonly stores: RelayStores;
  readonly first: Namespace;
  readonly namespaceOf: (eventId: EventId) => Promise<Namespace>;
}

leaseStoreConformance('MongoDB', async () => ({ leases: (await relayStores()).leases, passTime }));

instanceRegistryConformance('MongoDB', async () => ({ instances: (await relayStores()).instances, passTime }));

shardMapStoreConformance('MongoDB', async () => {
  const { shardMaps, leases } = await relayStores();
  return { shardMaps, leases, passTime };
});

checkpointStoreConformance('MongoDB', async () => ({
  checkpoints: (await relayStores()).checkpoints,
  tokens: [resumeToken('{"_data":"8267"}'), resumeToken('{"_data":"8101"}')],
}));

repairLogConformance('MongoDB', async () => {
  const name = database.database('relay');
  const { repairs } = await relayStores(name);
  const recorded = () => database.client().db(name).collection<RepairRecord>('relay_repairs').find().sort({ _id: 1 });
  return { repairs, recorded: () => recorded().toArray() };
});

relayControlsConformance('MongoDB', async () => {
  const name = database.database('relay');
  const operator = { by: 'operator', reason: '$reason' };
  return {
    controls: (await relayStores(name)).controls,
    pause: (topic) => pauseRelay(database.client(), name, { topic, ...operator }),
    resume: (topic) => resumeRelay(database.client(), name, { topic, ...operator }),
  };
});

captureConformance('MongoDB', async () => {
  const { stores, commit, first } = await outboxes();
  return {
    capture: stores.capture,
    commit,
    unknownToken: resumeToken('{"_data":"FEEDFACE"}'),
    async dropFirstOutbox() {
      await outboxOf(database.client(), first).drop();
      await ensureOutboxCollections(database.client(), databaseOf(first));
    },
  };
});

outboxReaderConformance('MongoDB', outboxFixture);
outboxActionsConformance('MongoDB', outboxFixture);
outboxMarkerConformance('MongoDB', outboxFixture);
outboxStatsConformance('MongoDB', outboxFixture);
pollingConformance('MongoDB', outboxFixture);

async function relayStores(name = database.database('relay')): Promise<RelayStores> {
  await ensureRelayCollections(database.client(), name);
  return createRelayStores({ client: database.client(), database: name, namespaces: [] });
}

async function outboxes(): Promise<Outboxes> {
  const client = database.client();
  const [first, second] = ['a', 'b'].map((prefix) =>
    namespace(`${database.database(prefix)}.${OUTBOX_COLLECTIONS.outbox}`),
  );
  const namespaces = [first!, second!];
  for (const outbox of namespaces) await ensureOutboxCollections(client, databaseOf(outbox));
  const stores = createRelayStores({
    client,
    database: database.database('relay'),
    namespaces,
    owner: 'relay 1',
    claimMs: CLAIM_MS,
  });
  const namespaceOf = async (eventId: EventId): Promise<Namespace> =>
    (await outboxOf(client, first!).countDocuments({ _id: eventId })) === 1 ? first! : second!;
  return {
    stores,
    first: first!,
    namespaceOf,
    async commit(events) {
      const samples = events.map(({ aggregateId, outbox }) => ({
        aggregateId,
        namespace: outbox === 'second' ? second! : first!,
      }));
      const ids = await commitSamples(client, samples);
      const references = ids.map((eventId, index) => ({ eventId, namespace: samples[index]!.namespace }));
      const rows = await stores.reader.lookUp(references);
      return ids.map((id) => rows.get(id) as OutboxRow);
    },
  };
}

async function outboxFixture(): Promise<MarkerFixture & PollingFixture & StatsFixture> {
  const client = database.client();
  const { stores, commit, namespaceOf } = await outboxes();
  const documents = async (eventId: EventId) => outboxOf(client, await namespaceOf(eventId));
  return {
    commit,
    reader: stores.reader,
    marker: stores.marker,
    polling: stores.polling,
    stats: stores.stats,
    claimMs: CLAIM_MS,
    passTime,
    async archive(eventId) {
      const outbox = await documents(eventId);
      const row = await outbox.findOneAndDelete({ _id: eventId });
      const archive = client.db(outbox.dbName).collection<{ _id: EventId }>(OUTBOX_COLLECTIONS.archive);
      await archive.insertOne(row!);
    },
    async remove(eventId) {
      await (await documents(eventId)).deleteOne({ _id: eventId });
    },
    actions: createOutboxActions(client),
    async publicationOf({ eventId }) {
      const row = await (await documents(eventId)).findOne({ _id: eventId });
      return {
        publishedAtMs: row?.publishedAt?.getTime() ?? null,
        messageId: row?.publication?.messageId ?? null,
        form: row?.publication?.form ?? null,
      };
    },
  };
}
