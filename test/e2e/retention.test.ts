import { connectMongo } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { retentionFixture } from '../integration/retention.support.js';
import { createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program } from './programs.js';

let client: MongoClient;
const running: Program[] = [];
const databases: string[] = [];

beforeAll(async () => {
  buildPrograms('services/relay');
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await createTopic({ name: 'orders-events' });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
});
afterAll(async () => {
  for (const name of databases) await client.db(name).dropDatabase();
  await client.close();
});

function startRelay(settings: Record<string, string>): Program {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const program = runService('relay', { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints, ...settings });
  running.push(program);
  return program;
}

describe('the relay', () => {
  it('archives old rows by itself when it is configured to, while it works and while another stands by', async () => {
    const [database, relayDatabase] = [uniqueName('retention'), uniqueName('relay')];
    databases.push(database, relayDatabase);
    const { group, left, outbox, publish } = await retentionFixture(client, database);
    await publish(Array.from({ length: 25 }, (_, index) => ({ aggregateId: `a${index % 4}`, daysAgo: 30 })));
    const young = await publish([{ aggregateId: 'a0', daysAgo: 2 }]);
    await group('one', 1);
    const settings = {
      MONGODB_DB: relayDatabase,
      OUTBOX_NAMESPACES: outbox,
      TOPICS: 'orders-events',
      RETENTION: 'archive-collections',
      RETENTION_EVERY_MS: '1000',
      RETENTION_BATCH_ROWS: '10',
    };
    await Promise.all([startRelay(settings), startRelay(settings)].map(untilReady));
    await until('all that is old has left', async () => (await left()).length === young.length, 30_000);
    const [bucket, ...more] = await client
      .db(database)
      .listCollections({ name: /^outbox_archive_/ })
      .toArray();
    expect(more).toEqual([]);
    expect(await client.db(database).collection(bucket!.name).countDocuments()).toBe(25);
  });
});
