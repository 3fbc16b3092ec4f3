import {
  OUTBOX_COLLECTIONS,
  createGroupRegistry,
  createProducerLedger,
  createRelayStores,
  ensureOutboxCollections,
  registerGroup,
} from '@nightporter/mongo';
import { namespace } from '@nightporter/protocol';
import { groupRegistryConformance, producerLedgerConformance } from '@nightporter/testing/conformance';
import type { OutboxRow } from '@nightporter/contracts';
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedDatabase } from './mongo-database.js';
import { commitSamples, outboxOf } from './mongo-samples.js';

const database = sharedDatabase();
const passTime = async (byMs: number): Promise<void> => {
  await sleep(byMs);
};

producerLedgerConformance('MongoDB', async () => {
  const client = database.client();
  const name = database.database('producer');
  await ensureOutboxCollections(client, name);
  const own = namespace(`${name}.${OUTBOX_COLLECTIONS.outbox}`);
  const { marker, reader } = createRelayStores({ client, database: 'unused', namespaces: [own] });
  return {
    ledger: createProducerLedger({ client, database: name }),
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
});

groupRegistryConformance('MongoDB', async () => {
  const client = database.client();
  const name = database.database('producer');
  await registerGroup(client, name, { group: 'group', topics: ['b-events', 'a-events'] });
  const entry = await client.db(name).collection<{ _id: string; floor: Date }>('groups').findOne({ _id: 'group' });
  return {
    registry: createGroupRegistry({ client, database: name, group: 'group' }),
    unknown: createGroupRegistry({ client, database: name, group: 'unknown' }),
    floorMs: entry!.floor.getTime(),
    passTime,
  };
});
