import { connectMongo } from '@nightporter/mongo';
import {
  DeliveryLoop,
  createDeliveryQueue,
  ensureNotificationCollections,
  idempotencyKey,
  notificationCollections,
  type DeliveryOptions,
  type NotificationCollections,
  type NotificationDocument,
  type SendOutcome,
  type Sender,
} from '@nightporter/notification-worker';
import { createLogger, systemClock } from '@nightporter/runtime';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest';
import { sharedStack, uniqueName } from '../support/stack.js';

export const within = { timeout: 30_000, interval: 50 };

/** What the tests of a file share: a database for each test, and the deliveries that run on it. */
export interface DeliveryFixture {
  /** Where the notifications of this test are. */
  readonly place: { readonly client: MongoClient; readonly database: string };
  readonly documents: NotificationCollections['notifications'];
  /** Puts a notification down, as a handler does; returns its key. */
  put(number: number, change?: Partial<NotificationDocument>): Promise<string>;
  /** Delivers until the end of the test. */
  startLoop(senders: DeliveryOptions['senders'], change?: Partial<DeliveryOptions>): DeliveryLoop;
  find(key: string): Promise<NotificationDocument>;
  untilState(key: string, state: NotificationDocument['state']): Promise<NotificationDocument>;
  /** Is called at the end of the test, the youngest first. */
  atEnd(end: () => Promise<void>): void;
}

export function deliveryFixture(): DeliveryFixture {
  let client: MongoClient;
  let database: string;
  let documents: NotificationCollections['notifications'];
  const ending: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    client = await connectMongo({ uri: sharedStack().mongodbUri });
  });
  afterAll(() => client.close());
  beforeEach(async () => {
    database = uniqueName('notification');
    await ensureNotificationCollections(client, database);
    documents = notificationCollections(client.db(database)).notifications;
  });
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end();
  });

  const find = async (key: string): Promise<NotificationDocument> => (await documents.findOne({ _id: key }))!;
  return {
    get place() {
      return { client, database };
    },
    get documents() {
      return documents;
    },
    async put(number, change = {}) {
      const eventId = `019a0000-0000-7000-8000-${String(number).padStart(12, '0')}`;
      const { channel = 'webhook', recipient = 'ada' } = change;
      const _id = idempotencyKey({ eventId, channel, recipient });
      await documents.insertOne({
        ...{ _id, eventId, channel, recipient, orderId: `order ${number}`, eventType: 'OrderPaid' },
        ...{ occurredAt: '2026-01-02T03:04:05.006Z', subject: 'paid', text: '$set: a text' },
        ...{ state: 'pending', attempts: 0, nextAttemptAt: new Date(0), revision: 1, ...change },
      });
      return _id;
    },
    startLoop(senders, change = {}) {
      const loop = new DeliveryLoop({
        queue: createDeliveryQueue({ client, database }),
        senders,
        clock: systemClock,
        random: () => 0,
        logger: createLogger({ name: 'test', level: 'silent' }),
        ...{ deliveriesMax: 4, pollMs: 50, claimMs: 5_000, sendTimeoutMs: 2_000, drainMs: 2_000 },
        ...{ attemptsMax: 4, retryFirstMs: 300, retryCapMs: 1_000, ...change },
      });
      const run = loop.run();
      ending.push(async () => {
        await loop.stop();
        await run;
      });
      return loop;
    },
    find,
    untilState: (key, state) =>
      vi.waitFor(async () => {
        const document = await find(key);
        expect(document.state).toBe(state);
        return document;
      }, within),
    atEnd: (end) => void ending.push(end),
  };
}

/** Calls of a scripted sender: `answer` is asked with the key and how often it has come. */
export function scripted(answer: (key: string, times: number) => SendOutcome | Promise<SendOutcome>) {
  const calls: { readonly key: string; readonly atMs: number }[] = [];
  const sender: Sender = {
    send: async ({ _id: key }) => {
      calls.push({ key, atMs: performance.now() });
      return answer(key, calls.filter((call) => call.key === key).length);
    },
    close: () => Promise.resolve(),
  };
  return { calls, sender, keys: () => calls.map(({ key }) => key) };
}
