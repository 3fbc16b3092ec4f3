import {
  CONSUMER_COLLECTIONS,
  createGroupStores,
  ensureConsumerCollections,
  type InboxDocument,
} from '@nightporter/mongo';
import {
  deadLetterCopiesConformance,
  gapFinderConformance,
  groupStoreConformance,
  parkedQueueConformance,
  repeatedEventsConformance,
  type GapFixture,
} from '@nightporter/testing/conformance';
import type { ClientSession } from 'mongodb';
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedDatabase } from './mongo-database.js';

const database = sharedDatabase();

interface BusinessDocument {
  readonly _id: string;
  readonly value: string;
}

groupStoreConformance('MongoDB', groupFixture);
parkedQueueConformance('MongoDB', groupFixture);
gapFinderConformance('MongoDB', groupFixture);

deadLetterCopiesConformance('MongoDB', async () => {
  const client = database.client();
  const name = database.database('consumer');
  await ensureConsumerCollections(client, name);
  const stores = createGroupStores({ client, database: name, group: 'group', copiesDeadLetters: true });
  return {
    ...stores,
    async passTime(byMs) {
      await sleep(byMs);
    },
  };
});

repeatedEventsConformance('MongoDB', async () => {
  const client = database.client();
  const name = database.database('consumer');
  await ensureConsumerCollections(client, name);
  const inbox = client.db(name).collection<InboxDocument>(CONSUMER_COLLECTIONS.inbox);
  return {
    ...createGroupStores({ client, database: name, group: 'group' }),
    duplicatesOf: async (eventId) => (await inbox.findOne({ eventId }))?.duplicates ?? null,
  };
});

async function groupFixture(): Promise<GapFixture<ClientSession>> {
  const client = database.client();
  const name = database.database('consumer');
  await ensureConsumerCollections(client, name);
  const business = client.db(name).collection<BusinessDocument>('business');
  const { store, parked, gaps } = createGroupStores({ client, database: name, group: 'group' });
  return {
    store,
    parked,
    gaps,
    async passTime(byMs) {
      await sleep(byMs);
    },
    async writeDocument(session, document, value) {
      await business.updateOne({ _id: document }, { $set: { value } }, { session, upsert: true });
    },
    async readDocument(document) {
      return (await business.findOne({ _id: document }))?.value ?? null;
    },
  };
}
