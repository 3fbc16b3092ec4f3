import {
  createSmtpSender,
  createWebhookSender,
  type Channel,
  type NotificationDocument,
} from '@nightporter/notification-worker';
import { receiveWebhooks, startMailServer } from '@nightporter/testing/receivers';
import { describe, expect, it } from 'vitest';
import { deliveryFixture } from './notification-delivery.support.js';

const at = deliveryFixture();

describe('A webhook', () => {
  it('is given the key, the token and the notification, and nothing of how it is kept', async () => {
    const receiver = await receiveWebhooks();
    at.atEnd(() => receiver.close());
    const key = await at.put(1);
    at.startLoop({ webhook: createWebhookSender({ url: receiver.url, token: 'secret' }) });
    await at.untilState(key, 'sent');
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
    at.atEnd(() => receiver.close());
    at.atEnd(() => elsewhere.close());
    const key = await at.put(1);
    at.startLoop({ webhook: createWebhookSender({ url: receiver.url, token: null }) }, { sendTimeoutMs: 300 });
    expect(await at.untilState(key, 'sent')).toMatchObject({ attempts: 4 });
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
    at.atEnd(() => server.close());
    const smtp: Partial<NotificationDocument> & { channel: Channel } = { channel: 'smtp' };
    const [ada, nobody, busyOne, unknown] = [
      await at.put(1, { ...smtp, recipient: 'ada@example.com', text: 'first\n.\nlast' }),
      await at.put(2, { ...smtp, recipient: 'nobody' }),
      await at.put(3, { ...smtp, recipient: 'busy' }),
      await at.put(4, { ...smtp, recipient: 'two words' }),
    ];
    const options = {
      from: 'Shop <shop@shop.example>',
      domain: 'customers.example',
      timeoutMs: 5_000,
      connectionsMax: 2,
    };
    at.startLoop({ smtp: createSmtpSender({ url: server.url, ...options }) });
    expect(await at.untilState(ada, 'sent')).toMatchObject({ receipt: '250 kept as 42' });
    expect((await at.untilState(nobody, 'dead')).lastFailure).toMatchObject({ kind: 'permanent' });
    expect((await at.untilState(unknown, 'dead')).lastFailure?.message).toBe('"two words" is no mail address');
    expect(await at.untilState(busyOne, 'sent')).toMatchObject({ attempts: 2 });
    const mail = server.mails.find(({ to }) => to === 'ada@example.com');
    // Long header lines are folded.
    expect(mail?.data.replaceAll(/\n[ \t]+/g, ' ')).toContain(`Message-ID: <${ada}@shop.example>`);
    expect(mail?.data).toContain('first\n.\nlast');
    expect(mail?.data).toContain('Subject: paid');
  });
});
