import { connectMongo } from '@nightporter/mongo';
import {
  DeliveryLoop,
  createDeadNotifications,
  createDeliveryQueue,
  createNotificationHandlers,
  createSmtpSender,
  createWebhookSender,
  ensureNotificationCollections,
  idempotencyKey,
  notificationCollections,
  type Channel,
  type DeliveryOptions,
  type NotificationCollections,
  type NotificationDocument,
  type SendOutcome,
  type Sender,
} from '@nightporter/notification-worker';
import { createLogger, systemClock } from '@nightporter/runtime';
import { receiveWebhooks, startMailServer } from '@nightporter/testing/receivers';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { sharedStack, uniqueName } from '../support/stack.js';

const within = { timeout: 30_000, interval: 50 };
const SENT: SendOutcome = { kind: 'sent', receipt: null };

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

/** Puts a notification down, as a handler does; returns its key. */
async function put(number: number, change: Partial<NotificationDocument> = {}): Promise<string> {
  const eventId = `019a0000-0000-7000-8000-${String(number).padStart(12, '0')}`;
  const { channel = 'webhook', recipient = 'ada' } = change;
  const _id = idempotencyKey({ eventId, channel, recipient });
  await documents.insertOne({
    ...{ _id, eventId, channel, recipient, orderId: `order ${number}`, eventType: 'OrderPaid' },
    ...{ occurredAt: '2026-01-02T03:04:05.006Z', subject: 'paid', text: '$set: a text' },
    ...{ state: 'pending', attempts: 0, nextAttemptAt: new Date(0), revision: 1, ...change },
  });
  return _id;
}

/** Calls of a scripted sender: `answer` is asked with the key and how often it has come. */
function scripted(answer: (key: string, times: number) => SendOutcome | Promise<SendOutcome>) {
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

function startLoop(senders: DeliveryOptions['senders'], change: Partial<DeliveryOptions> = {}): DeliveryLoop {
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
}

const find = async (key: string): Promise<NotificationDocument> => (await documents.findOne({ _id: key }))!;
const untilState = (key: string, state: NotificationDocument['state']): Promise<NotificationDocument> =>
  vi.waitFor(async () => {
    const document = await find(key);
    expect(document.state).toBe(state);
    return document;
  }, within);

describe('A notification', () => {
  it('is sent once, however many workers share the queue', async () => {
    const keys = await Promise.all(Array.from({ length: 60 }, (_, number) => put(number)));
    const { sender, keys: sent } = scripted(() => SENT);
    startLoop({ webhook: sender });
    startLoop({ webhook: sender });
    await vi.waitFor(async () => {
      expect(await documents.countDocuments({ state: 'sent' })).toBe(60);
    }, within);
    expect([...sent()].sort()).toEqual([...keys].sort());
    expect(await documents.countDocuments({ attempts: 1, sentAt: { $type: 'date' } })).toBe(60);
  });

  it('is sent again with the same key after delays that grow, and says why it waited', async () => {
    const key = await put(1);
    const { calls, sender } = scripted((_key, times) => (times < 4 ? { kind: 'transient', reason: '$busy' } : SENT));
    startLoop({ webhook: sender });
    const document = await untilState(key, 'sent');
    expect(document).toMatchObject({ attempts: 4, lastFailure: { kind: 'transient', message: '$busy' } });
    const waits = calls.slice(1).map(({ atMs }, index) => atMs - calls[index]!.atMs);
    expect(waits).toHaveLength(3);
    // 300, 600, then the cap.
    for (const [index, leastMs] of [300, 600, 1_000].entries())
      expect(waits[index]).toBeGreaterThanOrEqual(leastMs - 5);
    expect(new Set(calls.map((call) => call.key))).toEqual(new Set([key]));
  });

  it('is dead when its attempts are spent, and at once where it can never be taken; an operator has it sent again', async () => {
    const [spent, refused] = [await put(1), await put(2)];
    let mended = false;
    const { sender, keys } = scripted((key) => {
      if (mended) return SENT;
      return key === refused ? { kind: 'permanent', reason: 'no such box' } : { kind: 'transient', reason: 'busy' };
    });
    const loop = startLoop({ webhook: sender }, { retryFirstMs: 50 });
    await untilState(spent, 'dead');
    await untilState(refused, 'dead');
    expect(keys().filter((key) => key === spent)).toHaveLength(4);
    expect(keys().filter((key) => key === refused)).toHaveLength(1);
    expect(loop.snapshot()).toMatchObject({ dead: 2, sent: 0, retried: 3 });

    const dead = createDeadNotifications({ client, database });
    const listed = await dead.list({ limit: 10 });
    expect(listed.map(({ _id, lastFailure }) => [_id, lastFailure?.kind, lastFailure?.message])).toEqual([
      [spent, 'transient', 'busy'],
      [refused, 'permanent', 'no such box'],
    ]);
    expect(await dead.list({ limit: 10, after: spent })).toHaveLength(1);
    mended = true;
    await expect(dead.retry('all', { by: '', reason: 'x' })).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
    expect(await dead.retry([refused], { by: 'ada', reason: '$the box is there now' })).toEqual([refused]);
    expect(await untilState(refused, 'sent')).toMatchObject({
      attempts: 1,
      retries: [{ by: 'ada', reason: '$the box is there now' }],
    });
    expect((await find(spent)).state).toBe('dead');
    expect(await dead.retry('all', { by: 'ada', reason: 'the rest' })).toEqual([spent]);
    await untilState(spent, 'sent');
  });

  it('whose worker died while it sent it is sent by another once the claim runs out, and counted', async () => {
    const key = await put(1);
    const [claimed] = await createDeliveryQueue({ client, database }).claimDue({
      channels: ['webhook'],
      limit: 1,
      claimMs: 1_500,
    });
    expect(claimed).toMatchObject({ _id: key, attempts: 1 });
    const claimedAtMs = performance.now();
    const { calls, sender } = scripted(() => SENT);
    startLoop({ webhook: sender });
    expect(await untilState(key, 'sent')).toMatchObject({ attempts: 2 });
    expect(calls).toHaveLength(1);
    expect(calls[0]!.atMs - claimedAtMs).toBeGreaterThanOrEqual(1_400);
  });

  it('that every worker dies over comes to an end', async () => {
    const key = await put(1, { attempts: 4 });
    const { calls, sender } = scripted(() => SENT);
    startLoop({ webhook: sender });
    expect((await untilState(key, 'dead')).lastFailure?.message).toMatch(/^Its 4 attempts are spent/);
    expect(calls).toEqual([]);
  });

  it('that was sent stays sent, though a claim ran out meanwhile or somebody called it dead', async () => {
    const queue = createDeliveryQueue({ client, database });
    const due = { channels: ['webhook'] as const, limit: 1, claimMs: 1 };
    const key = await put(1);
    const [slow] = await queue.claimDue(due);
    const [fast] = await vi.waitFor(async () => {
      const found = await queue.claimDue(due);
      expect(found).toHaveLength(1);
      return found;
    }, within);
    // The one whose claim ran out knows nothing newer than the other.
    await queue.settle(slow!, { kind: 'dead', because: 'permanent', reason: 'late' });
    expect((await find(key)).state).toBe('pending');
    await queue.settle(fast!, { kind: 'dead', because: 'permanent', reason: 'no' });
    expect((await find(key)).state).toBe('dead');
    await queue.settle(slow!, { kind: 'sent', receipt: 'r' });
    await queue.settle(fast!, { kind: 'retry', delayMs: 0, reason: 'again' });
    expect(await find(key)).toMatchObject({ state: 'sent', receipt: 'r' });
  });

  it('that is being sent when the worker stops is given back uncounted, and sent by the next one', async () => {
    const key = await put(1);
    const hanging = scripted(() => new Promise(() => undefined));
    const first = startLoop({ webhook: hanging.sender }, { drainMs: 200 });
    await vi.waitFor(() => {
      expect(hanging.calls).toHaveLength(1);
    }, within);
    await first.stop();
    expect(await find(key)).toMatchObject({ state: 'pending', attempts: 0 });
    const next = scripted(() => SENT);
    startLoop({ webhook: next.sender });
    await untilState(key, 'sent');
    expect(next.keys()).toEqual([key]);
  });

  it('does not wait for others that hang, and waits where nobody serves its channel', async () => {
    const { sender } = scripted((key) =>
      key.startsWith('019a0000-0000-7000-8000-000000000001') ? new Promise(() => undefined) : SENT,
    );
    const hanging = await put(1);
    const other = await put(2);
    const unserved = await put(3, { channel: 'smtp' });
    const loop = startLoop({ webhook: sender }, { sendTimeoutMs: 400, attemptsMax: 1 });
    await untilState(other, 'sent');
    expect((await untilState(hanging, 'dead')).lastFailure?.message).toBe('no answer within 400 ms');
    expect(await find(unserved)).toMatchObject({ state: 'pending', attempts: 0 });
    expect(await createDeliveryQueue({ client, database }).measure(['webhook'])).toEqual({
      pending: 1,
      dead: 1,
      unserved: 1,
    });
    expect(loop.health()).toBeNull();
  });

  it('shows by its readiness that a channel takes nothing any more, until it does again', async () => {
    let mended = false;
    await Promise.all(Array.from({ length: 6 }, (_, number) => put(number)));
    const { sender } = scripted(() => (mended ? SENT : { kind: 'transient', reason: 'connection refused' }));
    const loop = startLoop({ webhook: sender }, { attemptsMax: 100 });
    await vi.waitFor(() => {
      expect(loop.health()).toMatch(/sends in a row by webhook have failed, the last because: connection refused/);
    }, within);
    mended = true;
    await vi.waitFor(() => {
      expect(loop.health()).toBeNull();
    }, within);
  });
});

describe('What is put down', () => {
  const event = (eventId: string, eventType: string, data: object) =>
    ({ eventId, eventType, data, aggregateId: 'o1', occurredAt: '2026-01-02T03:04:05.006Z' }) as never;

  it('is one notification for each event, channel and recipient, however often its handler runs, and what was sent stays sent', async () => {
    const handlers = createNotificationHandlers(notificationCollections(client.db(database)), ['webhook', 'smtp']);
    const created = event('e1', 'OrderCreated', { customerId: 'ada', currency: 'EUR', lines: [], totalMinor: 1 });
    const paid = event('e2', 'OrderPaid', { transactionId: 't', amountMinor: 1, currency: 'EUR' });
    // Without inbox and position, as in a generation of the group that begins anew on the same database.
    const handle = async () => {
      await client.withSession((session) =>
        session.withTransaction(async () => {
          await handlers.OrderCreated!({ event: created, session } as never);
          await handlers.OrderPaid!({ event: paid, session } as never);
        }),
      );
    };
    await handle();
    const { sender, calls } = scripted(() => SENT);
    startLoop({ webhook: sender });
    await vi.waitFor(async () => {
      expect(await documents.countDocuments({ state: 'sent' })).toBe(2);
    }, within);
    const before = await documents.find().sort({ _id: 1 }).toArray();
    expect(before.map(({ eventType, channel, state }) => `${eventType} ${channel} ${state}`)).toEqual([
      'OrderCreated smtp pending',
      'OrderCreated webhook sent',
      'OrderPaid smtp pending',
      'OrderPaid webhook sent',
    ]);
    await handle();
    expect(await documents.find().sort({ _id: 1 }).toArray()).toEqual(before);
    expect(calls).toHaveLength(2);
  });

  it('fails where nobody knows whose order it is, so that it is a dead letter and not forgotten', async () => {
    const handlers = createNotificationHandlers(notificationCollections(client.db(database)), ['log']);
    const completed = event('e1', 'OrderCompleted', {});
    const handle = client.withSession((session) => handlers.OrderCompleted!({ event: completed, session } as never));
    await expect(handle).rejects.toThrow(/order o1 was placed before this group began/);
  });
});

describe('A webhook', () => {
  it('is given the key, the token and the notification, and nothing of how it is kept', async () => {
    const receiver = await receiveWebhooks();
    ending.push(() => receiver.close());
    const key = await put(1);
    startLoop({ webhook: createWebhookSender({ url: receiver.url, token: 'secret' }) });
    await untilState(key, 'sent');
    const [delivery] = receiver.deliveries;
    expect(delivery!.headers).toMatchObject({ 'idempotency-key': key, authorization: 'Bearer secret' });
    expect(delivery!.body).toEqual({
      id: key,
      recipient: 'ada',
      orderId: 'order 1',
      eventId: '019a0000-0000-7000-8000-000000000001',
      eventType: 'OrderPaid',
      occurredAt: '2026-01-02T03:04:05.006Z',
      subject: 'paid',
      text: '$set: a text',
    });
  });

  it('that answers late, with 503, or not at all is asked again; one that sends elsewhere is not followed', async () => {
    const elsewhere = await receiveWebhooks();
    const answers = [null, 503, { status: 307, headers: { location: elsewhere.url } }];
    const receiver = await receiveWebhooks((_delivery, number) => answers[number - 1] ?? (number === 4 ? 201 : 500));
    ending.push(
      () => receiver.close(),
      () => elsewhere.close(),
    );
    const key = await put(1);
    startLoop({ webhook: createWebhookSender({ url: receiver.url, token: null }) }, { sendTimeoutMs: 300 });
    expect(await untilState(key, 'sent')).toMatchObject({ attempts: 4 });
    expect(receiver.counts()).toEqual(new Map([[key, 4]]));
    expect(elsewhere.deliveries).toEqual([]);
  });
});

describe('A mail', () => {
  it('has the key as its Message-ID, goes to the customer’s address, and is refused or put off as the server says', async () => {
    const busy = new Set(['busy@customers.example']);
    const server = await startMailServer((to) => {
      if (to.startsWith('nobody@')) return '550 no such box';
      return busy.delete(to) ? '451 later' : '250 ok';
    });
    ending.push(() => server.close());
    const smtp: Partial<NotificationDocument> & { channel: Channel } = { channel: 'smtp' };
    const [ada, nobody, busyOne, unknown] = [
      await put(1, { ...smtp, recipient: 'ada@example.com', text: 'first\n.\nlast' }),
      await put(2, { ...smtp, recipient: 'nobody' }),
      await put(3, { ...smtp, recipient: 'busy' }),
      await put(4, { ...smtp, recipient: 'two words' }),
    ];
    const options = {
      from: 'Shop <shop@shop.example>',
      domain: 'customers.example',
      timeoutMs: 5_000,
      connectionsMax: 2,
    };
    startLoop({ smtp: createSmtpSender({ url: server.url, ...options }) });
    expect(await untilState(ada, 'sent')).toMatchObject({ receipt: '250 kept as 42' });
    expect((await untilState(nobody, 'dead')).lastFailure).toMatchObject({ kind: 'permanent' });
    expect((await untilState(unknown, 'dead')).lastFailure?.message).toBe('"two words" is no mail address');
    expect(await untilState(busyOne, 'sent')).toMatchObject({ attempts: 2 });
    const mail = server.mails.find(({ to }) => to === 'ada@example.com');
    // Long header lines are folded.
    expect(mail?.data.replaceAll(/\n[ \t]+/g, ' ')).toContain(`Message-ID: <${ada}@shop.example>`);
    expect(mail?.data).toContain('first\n.\nlast');
    expect(mail?.data).toContain('Subject: paid');
  });
});
