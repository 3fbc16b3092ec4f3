import { connectMongo } from '@nightporter/mongo';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startS3Store, type S3Store } from '../support/s3-store.js';
import { retentionFixture } from '../integration/retention.support.js';
import { createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program } from './programs.js';

let client: MongoClient;
const running: Program[] = [];
const databases: string[] = [];
const stores: S3Store[] = [];

beforeAll(async () => {
  buildPrograms('services/relay');
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await createTopic({ name: 'orders-events' });
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
  await Promise.all(stores.splice(0).map((store) => store.close()));
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

  it('archives into S3, says why it cannot while that is away, and goes on when it is back', async () => {
    const [database, relayDatabase] = [uniqueName('retention'), uniqueName('relay')];
    databases.push(database, relayDatabase);
    const store = await startS3Store();
    stores.push(store);
    const { group, left, outbox, publish } = await retentionFixture(client, database);
    await publish(Array.from({ length: 25 }, (_, index) => ({ aggregateId: `a${index % 4}`, daysAgo: 30 })));
    const young = await publish([{ aggregateId: 'a0', daysAgo: 2 }]);
    await group('one', 1);
    await store.down();
    const relay = startRelay({
      ...store.env,
      MONGODB_DB: relayDatabase,
      OUTBOX_NAMESPACES: outbox,
      TOPICS: 'orders-events',
      RETENTION: 'archive-files',
      ARCHIVE_FOLDER: store.location('orders'),
      RETENTION_EVERY_MS: '1000',
      RETENTION_BATCH_ROWS: '10',
    });
    await untilReady(relay);
    const [line] = await relay.output(/.*NP_ARCHIVE_FAILED.*retention failed.*/, 60_000);
    expect(line).toMatch(/writing .* in the archive s3:\/\/archive\/orders\/: .*ECONNREFUSED/);
    expect(await left()).toHaveLength(26);
    await store.up();
    await until('all that is old has left', async () => (await left()).length === young.length, 30_000);
    expect(await store.keys()).toHaveLength(6);
    relay.signal('SIGTERM');
    const { exit, stderr, stdout } = await relay.ended;
    expect(exit).toBe(0);
    expect(`${stdout}${stderr}`).not.toContain(store.env['AWS_SECRET_ACCESS_KEY']);
  });
});
