import { ordersCatalogue } from '@nightporter/contracts';
import { connectMongo, CONSUMER_COLLECTIONS, ensureOutboxCollections } from '@nightporter/mongo';
import { createNotificationWorker, notificationCollections } from '@nightporter/notification-worker';
import { createOutbox } from '@nightporter/outbox';
import { relayService } from '@nightporter/relay-service';
import {
  createLogger,
  loadConfig,
  type CommonSettings,
  type ServiceDefinition,
  type SettingTable,
} from '@nightporter/runtime';
import { receiveWebhooks, type Answer, type WebhookReceiver } from '@nightporter/testing/receivers';
import type { MongoClient } from 'mongodb';
import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { builtFile, buildPrograms, runService, until, untilReady, type Program } from './programs.js';

const TOPIC = 'orders-events';

let client: MongoClient;
/** Names of this test alone. */
let names: { readonly orders: string; readonly notification: string; readonly relay: string; readonly group: string };
let receiver: WebhookReceiver;
/** What has to be ended, the youngest last. */
const opened: (() => Promise<void>)[] = [];

beforeAll(async () => {
  buildPrograms('services/notification-worker', 'services/cli');
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await createTopic({ name: TOPIC });
});
afterAll(() => client.close());

beforeEach(async () => {
  names = { orders: uniqueName('o'), notification: uniqueName('n'), relay: uniqueName('r'), group: uniqueName('g') };
  await ensureOutboxCollections(client, names.orders);
  // The topic is the catalogue's, and other tests may have left events there: this group begins behind them.
  await createGroup({ name: names.group, topics: [TOPIC] });
  await startHere(relayService, {
    MONGODB_DB: names.relay,
    OUTBOX_NAMESPACES: `${names.orders}.outbox`,
    TOPICS: TOPIC,
  });
});
afterEach(async () => {
  for (const end of opened.splice(0).reverse()) await end();
});

const addresses = () => {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  return { MONGODB_URI: mongodbUri, ROCKETMQ_ENDPOINTS: rocketmqEndpoints, PORT: '0' };
};

/** Runs a service in this process, as `runService` would in one of its own. Returns what ends it. */
async function startHere<Table extends CommonSettings & SettingTable>(
  service: ServiceDefinition<Table>,
  environment: Record<string, string>,
): Promise<() => Promise<void>> {
  const running = await service.start({
    config: loadConfig(service.config, { ...addresses(), ...environment }),
    logger: createLogger({ name: service.name, level: 'silent' }),
    signal: new AbortController().signal,
  });
  let stopped: Promise<void> | null = null;
  const stop = (): Promise<void> => (stopped ??= running.stop());
  opened.push(stop);
  return stop;
}

const settingsOf = (query: string): Record<string, string> => ({
  ...{ MONGODB_DB: names.notification, ORDERS_DB: names.orders, GROUP: names.group },
  ...{ CHANNELS: 'webhook', WEBHOOK_URL: `${receiver.url}?${query}` },
  ...{ INVISIBLE_MS: '3000', SEND_TIMEOUT_MS: '2000', DELIVERY_CLAIM_MS: '3000', DELIVERIES_MAX: '4' },
  ...{ DELIVERY_POLL_MS: '100', DELIVERY_RETRY_FIRST_MS: '100' },
});

/** In a process of its own, which can be killed. */
function spawnWorker(query: string, settings: Record<string, string> = {}): Program {
  const program = runService('notification-worker', { ...addresses(), ...settingsOf(query), ...settings });
  opened.push(() => program.destroy());
  return program;
}

const startWorker = (query: string, settings: Record<string, string> = {}): Promise<() => Promise<void>> =>
  startHere(createNotificationWorker(), { ...settingsOf(query), ...settings });

async function listen(answer: Answer): Promise<void> {
  const listening = await receiveWebhooks(answer);
  receiver = listening;
  opened.push(() => listening.close());
}

const notifications = () => notificationCollections(client.db(names.notification)).notifications;

/** Orders that are placed, paid and cancelled: three events each. */
async function placeOrders(count: number): Promise<void> {
  const outbox = createOutbox({ client, database: names.orders, source: 'orders', catalogue: ordersCatalogue });
  const currency = 'EUR';
  for (let index = 0; index < count; index += 1) {
    const order = { aggregateType: 'order', aggregateId: `${names.orders}-${index}` } as const;
    const lines = [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }];
    await outbox.transaction(async ({ emit }) => {
      const created = { customerId: `c${index}`, currency, lines, totalMinor: 10 };
      await emit({ ...order, eventType: 'OrderCreated', payload: created });
      const paid = { transactionId: `t${index}`, amountMinor: 10, currency };
      await emit({ ...order, eventType: 'OrderPaid', payload: paid });
      await emit({ ...order, eventType: 'OrderCancelled', payload: { reason: 'too late', wasPaid: true } });
    });
  }
}

async function untilSent(count: number): Promise<void> {
  await until(`${count} notifications are sent`, async () => {
    return (await notifications().countDocuments({ state: 'sent' })) === count;
  });
}

describe('the notification worker', () => {
  it('tells each customer of each event once; what a killed worker was sending comes again with the same key, and nothing else', async () => {
    const KILL_AT = [4, 15];
    const workers = new Map<string, Program>();
    const killed: string[] = [];
    const add = (query: string): void => void workers.set(query, spawnWorker(query));
    await listen(async ({ query, key }, number) => {
      if (!KILL_AT.includes(number)) return 200;
      // Between the sending and the marking: the receiver has it, and the worker never hears that.
      await workers.get(query)!.destroy();
      killed.push(key);
      add(`${query}x`);
      return null;
    });
    // All of it is put down first, by a worker that does not come to sending: what is killed then is in the middle of sending, and not of
    // a transaction, which would hold its documents until the server gives it up.
    const stopQuiet = await startWorker('quiet', { DELIVERY_POLL_MS: '60000' });
    await placeOrders(12);
    await until('all of it is put down', async () => (await notifications().countDocuments()) === 36);
    await stopQuiet();
    add('a');
    add('b');
    await until(
      '36 notifications are sent',
      async () => (await notifications().countDocuments({ state: 'sent' })) === 36,
      120_000,
    );

    const counts = receiver.counts();
    const documents = await notifications().find().toArray();
    expect([...counts.keys()].sort()).toEqual(documents.map(({ _id }) => _id).sort());
    expect(killed).toHaveLength(KILL_AT.length);
    for (const key of killed) expect(counts.get(key)).toBeGreaterThanOrEqual(2);
    // Only what was in hand at a kill may come twice.
    expect(receiver.deliveries.length - counts.size).toBeLessThanOrEqual(KILL_AT.length * 4);
    for (const { key, body } of receiver.deliveries) expect(body['id']).toBe(key);
  });

  it('sends nothing again when a new generation of its group reads every event anew', async () => {
    await listen(() => 200);
    await startWorker('first');
    await placeOrders(3);
    await untilSent(9);
    await createGroup({ name: `${names.group}-generation-2`, topics: [TOPIC] });
    await startWorker('second', { GROUP: `${names.group}@2`, LEDGER_LAG_MS: '100', LEDGER_SWEEP_EVERY_MS: '200' });
    await until('the new generation has settled all of it', async () => {
      const inbox = client.db(names.notification).collection(CONSUMER_COLLECTIONS.inbox);
      return (await inbox.countDocuments({ group: `${names.group}@2`, outcome: 'applied' })) === 9;
    });
    expect(await notifications().countDocuments({ state: 'sent' })).toBe(9);
    expect(receiver.deliveries).toHaveLength(9);
  });

  it('ends in time while a receiver hangs, and gives back what it was sending', async () => {
    let isMended = false;
    await listen(() => (isMended ? 200 : null));
    const worker = spawnWorker('slow', { SEND_TIMEOUT_MS: '60000', DELIVERY_CLAIM_MS: '61000', SHUTDOWN_MS: '3000' });
    await untilReady(worker);
    await placeOrders(1);
    await until('something is being sent', () => Promise.resolve(receiver.deliveries.length > 0));
    worker.signal('SIGTERM');
    expect((await worker.ended).exit).toBe(0);
    expect(await notifications().countDocuments({ state: 'pending', attempts: { $gt: 0 } })).toBe(0);
    isMended = true;
    await startWorker('next');
    // Not after the 61 s for which it was claimed.
    await untilSent(3);
  });

  it('shows what could not be sent, and sends it again when an operator says so', async () => {
    let isMended = false;
    await listen(({ body }) => (body['eventType'] === 'OrderPaid' && !isMended ? 422 : 200));
    const url = await untilReady(spawnWorker('one'));
    await placeOrders(1);
    await untilSent(2);
    const command = (...more: readonly string[]) => {
      const place = ['--mongodb-uri', sharedStack().mongodbUri, '--notification-db', names.notification];
      const run = [builtFile('services/cli/dist/main.js'), 'notifications', ...more, ...place];
      return spawnSync(process.execPath, run, { encoding: 'utf8', timeout: 60_000 });
    };
    await until('it is dead', () => Promise.resolve(command('dead').stdout.includes('the receiver answered 422')));
    const status = (await (await fetch(`${url}/status`)).json()) as Record<string, unknown>;
    expect(status).toMatchObject({ state: 'running', delivery: { state: 'running', sent: 2, dead: 1 } });
    expect(command('retry', '--by', 'ada', '--reason', 'mended')).toMatchObject({ status: 2 });
    expect(command('retry', '--all', '--by', ' ', '--reason', 'mended')).toMatchObject({ status: 2 });
    isMended = true;
    const retried = command('retry', '--all', '--by', 'ada', '--reason', 'mended');
    expect(retried).toMatchObject({ status: 0, stdout: '1 notification due again\n' });
    await untilSent(3);
    expect([...receiver.counts().values()].sort()).toEqual([1, 1, 2]);
    expect(command('dead', '--json')).toMatchObject({ status: 0, stdout: '[]\n' });
  });
});
