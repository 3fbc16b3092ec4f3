import { ordersCatalogue } from '@nightporter/contracts';
import { startStack, type Stack } from '@nightporter/embedded';
import { connectMongo, ensureOutboxCollections } from '@nightporter/mongo';
import { createOutbox } from '@nightporter/outbox';
import { relayService } from '@nightporter/relay-service';
import {
  createLogger,
  loadConfig,
  type CommonSettings,
  type ServiceDefinition,
  type SettingTable,
} from '@nightporter/runtime';
import { startMailServer, type MailServer } from '@nightporter/testing/receivers';
import type { MongoClient } from 'mongodb';
import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { showFigures } from '../../../../test/support/figures.js';
import { loyaltyWorker } from './worker.js';

const within = { timeout: 60_000, interval: 100 };

describe('The loyalty worker', () => {
  /** What has to be ended, the youngest last. */
  const opened: (() => Promise<void>)[] = [];
  let stack: Stack;
  let client: MongoClient;
  let mail: MailServer;

  beforeAll(async () => {
    stack = await startStack({
      topics: [{ name: 'orders-events' }],
      groups: [{ name: 'loyalty', topics: ['orders-events'] }],
    });
    opened.push(() => stack.stop());
    client = await connectMongo({ uri: stack.mongodb.uri });
    opened.push(() => client.close());
    mail = await startMailServer();
    opened.push(() => mail.close());
    await ensureOutboxCollections(client, 'orders');
    await start(relayService, { OUTBOX_NAMESPACES: 'orders.outbox', TOPICS: 'orders-events' });
    await start(loyaltyWorker, { SMTP_URL: mail.url, MAIL_FROM: 'Shop <shop@shop.example>' });
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

  it('thanks a customer once for every third order, even when the broker brings all of them again', async (context) => {
    const outbox = createOutbox({ client, database: 'orders', source: 'orders', catalogue: ordersCatalogue });
    const lines = [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }];
    for (const [index, customerId] of ['ada', 'ben', 'ada', 'ada', 'ben', 'ada', 'ada', 'ada'].entries()) {
      const order = { aggregateType: 'order', aggregateId: `order ${index}` } as const;
      const payload = { customerId: `${customerId}@example.com`, currency: 'EUR', lines, totalMinor: 10 };
      await outbox.transaction(async ({ emit }) => {
        await emit({ ...order, eventType: 'OrderCreated', payload });
        await emit({ ...order, eventType: 'OrderCompleted', payload: {} });
      });
    }
    const subjects = () =>
      mail.mails.map(({ to, data }) => `${to}: ${/^Subject: (.*)$/m.exec(data)?.[1] ?? ''}`).sort();
    const thanked = ['ada@example.com: Thank you for 3 orders', 'ada@example.com: Thank you for 6 orders'];
    await vi.waitFor(() => {
      expect(subjects()).toEqual(thanked);
    }, within);
    await stack.rocketmq.rewind({ topic: 'orders-events', group: 'loyalty' });
    const inbox = client.db('loyalty').collection('inbox');
    await vi.waitFor(async () => {
      expect(await inbox.countDocuments({ duplicates: { $gte: 1 } })).toBe(16);
    }, within);
    const seen = { orders: 8, 'delivered again': 16, mails: mail.mails.length };
    showFigures(context, seen, stack.mongodb.engine);
    expect(subjects()).toEqual(thanked);
  });

  it('is one folder with fewer than 60 lines of code', (context) => {
    const folder = new URL('.', import.meta.url);
    const files = readdirSync(folder).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
    expect(files.sort()).toEqual(['main.ts', 'worker.ts']);
    const lines = files.flatMap((name) => readFileSync(new URL(name, folder), 'utf8').trimEnd().split('\n'));
    showFigures(context, { files: files.length, 'lines of code': lines.length }, stack.mongodb.engine);
    expect(lines.length).toBeLessThan(60);
  });
});
