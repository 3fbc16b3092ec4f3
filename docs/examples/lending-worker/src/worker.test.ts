import { startStack, type Stack } from '@nightporter/embedded';
import { createDeadLetters, type DeadLetters } from '@nightporter/ledger';
import { connectMongo } from '@nightporter/mongo';
import { relayService } from '@nightporter/relay-service';
import {
  createLogger,
  loadConfig,
  type CommonSettings,
  type ServiceDefinition,
  type SettingTable,
} from '@nightporter/runtime';
import type { Db, MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { libraryCatalogue } from './events.js';
import { openLibrary, type Library } from './library.js';
import { lendingWorker, type MemberDocument } from './worker.js';

const within = { timeout: 60_000, interval: 100 };

describe('The lending worker', () => {
  /** What has to be ended, the youngest last. */
  const opened: (() => Promise<void>)[] = [];
  let stack: Stack;
  let library: Library;
  let lending: Db;
  let deadLetters: DeadLetters;

  beforeAll(async () => {
    stack = await startStack({
      topics: [{ name: 'books-events' }],
      groups: [{ name: 'lending', topics: ['books-events'] }],
    });
    opened.push(() => stack.stop());
    const client: MongoClient = await connectMongo({ uri: stack.mongodb.uri });
    opened.push(() => client.close());
    library = await openLibrary(client);
    lending = client.db('lending');
    const read = libraryCatalogue.read.bind(libraryCatalogue);
    deadLetters = createDeadLetters({ client, database: 'lending', group: 'lending', read });
    await start(relayService, { OUTBOX_NAMESPACES: 'library.outbox', TOPICS: 'books-events' });
    await start(lendingWorker, { MEMBERS: 'ada,ben', ATTEMPTS_MAX: '1' });
  });
  afterAll(async () => {
    for (const end of opened.reverse()) await end();
  });

  /** Runs a service in this process, as `runService` would in one of its own. */
  async function start<Table extends CommonSettings & SettingTable>(
    service: ServiceDefinition<Table>,
    environment: Record<string, string>,
  ): Promise<void> {
    const addresses = { MONGODB_URI: stack.mongodb.uri, ROCKETMQ_ENDPOINTS: stack.rocketmq.endpoints, PORT: '0' };
    const running = await service.start({
      config: loadConfig(service.config, { ...addresses, ...environment }),
      logger: createLogger({ name: service.name, level: 'silent' }),
      signal: new AbortController().signal,
    });
    opened.push(() => running.stop());
  }

  const members = () => lending.collection<MemberDocument>('members').find().sort({ _id: 1 }).toArray();

  it('counts every loan once, even when the broker brings all of them again', async () => {
    await library.lend({ bookId: 'faust', memberId: 'ada' });
    await library.lend({ bookId: 'emma', memberId: 'ben' });
    await library.lend({ bookId: 'faust', memberId: 'ben' });
    const counted = [
      { _id: 'ada', loans: 1 },
      { _id: 'ben', loans: 2 },
    ];
    await vi.waitFor(async () => {
      expect(await members()).toEqual(counted);
    }, within);

    await stack.rocketmq.rewind({ topic: 'books-events', group: 'lending' });
    await vi.waitFor(async () => {
      expect(await lending.collection('inbox').countDocuments({ duplicates: { $gte: 1 } })).toBe(3);
    }, within);
    expect(await members()).toEqual(counted);
  });

  it('keeps a loan to an unknown member as a dead letter, and counts it once the member is there', async () => {
    await library.lend({ bookId: 'medea', memberId: 'eve' });
    const letter = await vi.waitFor(async () => {
      const [first] = await deadLetters.list({ code: 'NP_HANDLER_FAILED' });
      if (first === undefined) throw new Error('no dead letter yet');
      return first;
    }, within);
    expect(letter.failure?.message).toContain('there is no member eve');

    await lending.collection<MemberDocument>('members').insertOne({ _id: 'eve', loans: 0 });
    await deadLetters.retry(letter, { by: 'ada', reason: 'eve has joined' });
    await vi.waitFor(async () => {
      expect(await members()).toContainEqual({ _id: 'eve', loans: 1 });
    }, within);
  });
});
