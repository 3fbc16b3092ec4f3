import type { GroupRegistry, ProducerLedger } from '@nightporter/consumer';
import type { OutboxRow } from '@nightporter/contracts';
import { OUTBOX_COLLECTIONS, createRelayStores, ensureOutboxCollections, registerGroup } from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import type { LedgerFixture, RegistryFixture } from '@nightporter/testing/conformance';
import { setTimeout as sleep } from 'node:timers/promises';
import type { sharedDatabase } from './mongo-database.js';
import { commitSamples, outboxOf } from './mongo-samples.js';

type Databases = ReturnType<typeof sharedDatabase>;

const passTime = async (byMs: number): Promise<void> => {
  await sleep(byMs);
};

/** An empty outbox, and the ledger that `open` makes of its database. */
export async function ledgerFixture(
  databases: Databases,
  open: (database: string) => Promise<ProducerLedger> | ProducerLedger,
): Promise<LedgerFixture> {
  const client = databases.client();
  const name = databases.database('producer');
  await ensureOutboxCollections(client, name);
  const own = namespace(`${name}.${OUTBOX_COLLECTIONS.outbox}`);
  const { marker, reader } = createRelayStores({ client, database: 'unused', namespaces: [own] });
  return {
    ledger: await open(name),
    marker,
    topic: 'sample-events',
    async commit(events) {
      const ids = await commitSamples(
        client,
        events.map(({ aggregateId }) => ({ aggregateId, namespace: own })),
      );
      const rows = await reader.lookUp(ids.map((eventId) => ({ eventId, namespace: own })));
      return ids.map((id) => rows.get(id) as OutboxRow);
    },
    async skip({ eventId }) {
      const skip = { by: 'operator', reason: 'test', at: new Date() };
      await outboxOf(client, own).updateOne({ _id: eventId }, { $set: { skip }, $inc: { revision: 1 } });
    },
    async retire({ eventId }, how) {
      const row = await outboxOf(client, own).findOneAndDelete({ _id: eventId });
      const archive = outboxOf(client, namespace(`${name}.${OUTBOX_COLLECTIONS.archive}_2026_01`));
      if (how === 'archive') await archive.insertOne(row!);
    },
    passTime,
  };
}

/** A group that was registered just now, and the registries that `open` makes. */
export async function registryFixture(
  databases: Databases,
  open: (place: { database: string; group: string }) => Promise<GroupRegistry> | GroupRegistry,
): Promise<RegistryFixture> {
  const client = databases.client();
  const database = databases.database('producer');
  await registerGroup(client, database, { group: 'group', topics: ['b-events', 'a-events'] });
  const entry = await client.db(database).collection<{ _id: string; floor: Date }>('groups').findOne({ _id: 'group' });
  return {
    registry: await open({ database, group: 'group' }),
    unknown: await open({ database, group: 'unknown' }),
    floorMs: entry!.floor.getTime(),
    passTime,
  };
}
