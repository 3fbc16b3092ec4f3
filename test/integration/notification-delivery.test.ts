import {
  createDeadNotifications,
  createDeliveryQueue,
  createNotificationHandlers,
  notificationCollections,
  type SendOutcome,
} from '@nightporter/notification-worker';
import { describe, expect, it, vi } from 'vitest';
import { deliveryFixture, scripted, within } from './notification-delivery.support.js';

const at = deliveryFixture();
const SENT: SendOutcome = { kind: 'sent', receipt: null };

describe('A notification', () => {
  it('is sent once, however many workers share the queue', async () => {
    const keys = await Promise.all(Array.from({ length: 60 }, (_, number) => at.put(number)));
    const { sender, keys: sent } = scripted(() => SENT);
    at.startLoop({ webhook: sender });
    at.startLoop({ webhook: sender });
    await vi.waitFor(async () => {
      expect(await at.documents.countDocuments({ state: 'sent' })).toBe(60);
    }, within);
    expect([...sent()].sort()).toEqual([...keys].sort());
    expect(await at.documents.countDocuments({ attempts: 1, sentAt: { $type: 'date' } })).toBe(60);
  });

  it('is sent again with the same key after delays that grow, and says why it waited', async () => {
    const key = await at.put(1);
    const { calls, sender } = scripted((_key, times) => (times < 4 ? { kind: 'transient', reason: '$busy' } : SENT));
    at.startLoop({ webhook: sender });
    const document = await at.untilState(key, 'sent');
    expect(document).toMatchObject({ attempts: 4, lastFailure: { kind: 'transient', message: '$busy' } });
    const waits = calls.slice(1).map(({ atMs }, index) => atMs - calls[index]!.atMs);
    expect(waits).toHaveLength(3);
    // 300, 600, then the cap.
    for (const [index, leastMs] of [300, 600, 1_000].entries())
      expect(waits[index]).toBeGreaterThanOrEqual(leastMs - 5);
    expect(new Set(calls.map((call) => call.key))).toEqual(new Set([key]));
  });

  it('is dead when its attempts are spent, and at once where it can never be taken; an operator has it sent again', async () => {
    const [spent, refused] = [await at.put(1), await at.put(2)];
    let mended = false;
    const { sender, keys } = scripted((key) => {
      if (mended) return SENT;
      return key === refused ? { kind: 'permanent', reason: 'no such box' } : { kind: 'transient', reason: 'busy' };
    });
    const loop = at.startLoop({ webhook: sender }, { retryFirstMs: 50 });
    await at.untilState(spent, 'dead');
    await at.untilState(refused, 'dead');
    expect(keys().filter((key) => key === spent)).toHaveLength(4);
    expect(keys().filter((key) => key === refused)).toHaveLength(1);
    expect(loop.snapshot()).toMatchObject({ dead: 2, sent: 0, retried: 3 });

    const dead = createDeadNotifications(at.place);
    const listed = await dead.list({ limit: 10 });
    expect(listed.map(({ _id, lastFailure }) => [_id, lastFailure?.kind, lastFailure?.message])).toEqual([
      [spent, 'transient', 'busy'],
      [refused, 'permanent', 'no such box'],
    ]);
    expect(await dead.list({ limit: 10, after: spent })).toHaveLength(1);
    mended = true;
    await expect(dead.retry('all', { by: '', reason: 'x' })).rejects.toMatchObject({ code: 'NP_ACTION_INVALID' });
    expect(await dead.retry([refused], { by: 'ada', reason: '$the box is there now' })).toEqual([refused]);
    expect(await at.untilState(refused, 'sent')).toMatchObject({
      attempts: 1,
      retries: [{ by: 'ada', reason: '$the box is there now' }],
    });
    expect((await at.find(spent)).state).toBe('dead');
    expect(await dead.retry('all', { by: 'ada', reason: 'the rest' })).toEqual([spent]);
    await at.untilState(spent, 'sent');
  });

  it('whose worker died while it sent it is sent by another once the claim runs out, and counted', async () => {
    const key = await at.put(1);
    const [claimed] = await createDeliveryQueue(at.place).claimDue({
      channels: ['webhook'],
      limit: 1,
      claimMs: 1_500,
    });
    expect(claimed).toMatchObject({ _id: key, attempts: 1 });
    const claimedAtMs = performance.now();
    const { calls, sender } = scripted(() => SENT);
    at.startLoop({ webhook: sender });
    expect(await at.untilState(key, 'sent')).toMatchObject({ attempts: 2 });
    expect(calls).toHaveLength(1);
    expect(calls[0]!.atMs - claimedAtMs).toBeGreaterThanOrEqual(1_400);
  });

  it('that every worker dies over comes to an end', async () => {
    const key = await at.put(1, { attempts: 4 });
    const { calls, sender } = scripted(() => SENT);
    at.startLoop({ webhook: sender });
    expect((await at.untilState(key, 'dead')).lastFailure?.message).toMatch(/^Its 4 attempts are spent/);
    expect(calls).toEqual([]);
  });

  it('that was sent stays sent, though a claim ran out meanwhile or somebody called it dead', async () => {
    const queue = createDeliveryQueue(at.place);
    const due = { channels: ['webhook'] as const, limit: 1, claimMs: 1 };
    const key = await at.put(1);
    const [slow] = await queue.claimDue(due);
    const [fast] = await vi.waitFor(async () => {
      const found = await queue.claimDue(due);
      expect(found).toHaveLength(1);
      return found;
    }, within);
    // The one whose claim ran out knows nothing newer than the other.
    await queue.settle(slow!, { kind: 'dead', because: 'permanent', reason: 'late' });
    expect((await at.find(key)).state).toBe('pending');
    await queue.settle(fast!, { kind: 'dead', because: 'permanent', reason: 'no' });
    expect((await at.find(key)).state).toBe('dead');
    await queue.settle(slow!, { kind: 'sent', receipt: 'r' });
    await queue.settle(fast!, { kind: 'retry', delayMs: 0, reason: 'again' });
    expect(await at.find(key)).toMatchObject({ state: 'sent', receipt: 'r' });
  });

  it('that is being sent when the worker stops is given back uncounted, and sent by the next one', async () => {
    const key = await at.put(1);
    const hanging = scripted(() => new Promise(() => undefined));
    const first = at.startLoop({ webhook: hanging.sender }, { drainMs: 200 });
    await vi.waitFor(() => {
      expect(hanging.calls).toHaveLength(1);
    }, within);
    await first.stop();
    expect(await at.find(key)).toMatchObject({ state: 'pending', attempts: 0 });
    const next = scripted(() => SENT);
    at.startLoop({ webhook: next.sender });
    await at.untilState(key, 'sent');
    expect(next.keys()).toEqual([key]);
  });

  it('does not wait for others that hang, and waits where nobody serves its channel', async () => {
    const { sender } = scripted((key) =>
      key.startsWith('019a0000-0000-7000-8000-000000000001') ? new Promise(() => undefined) : SENT,
    );
    const hanging = await at.put(1);
    const other = await at.put(2);
    const unserved = await at.put(3, { channel: 'smtp' });
    const loop = at.startLoop({ webhook: sender }, { sendTimeoutMs: 400, attemptsMax: 1 });
    await at.untilState(other, 'sent');
    expect((await at.untilState(hanging, 'dead')).lastFailure?.message).toBe('no answer within 400 ms');
    expect(await at.find(unserved)).toMatchObject({ state: 'pending', attempts: 0 });
    expect(await createDeliveryQueue(at.place).measure(['webhook'])).toEqual({
      pending: 1,
      dead: 1,
      unserved: 1,
      oldestPendingMs: expect.any(Number),
    });
    expect(loop.health()).toBeNull();
  });

  it('shows by its readiness that a channel takes nothing any more, until it does again', async () => {
    let mended = false;
    await Promise.all(Array.from({ length: 6 }, (_, number) => at.put(number)));
    const { sender } = scripted(() => (mended ? SENT : { kind: 'transient', reason: 'connection refused' }));
    const loop = at.startLoop({ webhook: sender }, { attemptsMax: 100 });
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
    const handlers = createNotificationHandlers(notificationCollections(at.place.client.db(at.place.database)), [
      'webhook',
      'smtp',
    ]);
    const created = event('e1', 'OrderCreated', { customerId: 'ada', currency: 'EUR', lines: [], totalMinor: 1 });
    const paid = event('e2', 'OrderPaid', { transactionId: 't', amountMinor: 1, currency: 'EUR' });
    // Without inbox and position, as in a generation of the group that begins anew on the same database.
    const handle = async () => {
      await at.place.client.withSession((session) =>
        session.withTransaction(async () => {
          await handlers.OrderCreated!({ event: created, session } as never);
          await handlers.OrderPaid!({ event: paid, session } as never);
        }),
      );
    };
    await handle();
    const { sender, calls } = scripted(() => SENT);
    at.startLoop({ webhook: sender });
    await vi.waitFor(async () => {
      expect(await at.documents.countDocuments({ state: 'sent' })).toBe(2);
    }, within);
    const before = await at.documents.find().sort({ _id: 1 }).toArray();
    expect(before.map(({ eventType, channel, state }) => `${eventType} ${channel} ${state}`)).toEqual([
      'OrderCreated smtp pending',
      'OrderCreated webhook sent',
      'OrderPaid smtp pending',
      'OrderPaid webhook sent',
    ]);
    await handle();
    expect(await at.documents.find().sort({ _id: 1 }).toArray()).toEqual(before);
    expect(calls).toHaveLength(2);
  });

  it('fails where nobody knows whose order it is, so that it is a dead letter and not forgotten', async () => {
    const handlers = createNotificationHandlers(notificationCollections(at.place.client.db(at.place.database)), [
      'log',
    ]);
    const completed = event('e1', 'OrderCompleted', {});
    const handle = at.place.client.withSession((session) =>
      handlers.OrderCompleted!({ event: completed, session } as never),
    );
    await expect(handle).rejects.toThrow(/order o1 was placed before this group began/);
  });
});
