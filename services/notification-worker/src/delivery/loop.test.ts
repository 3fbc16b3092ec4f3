import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createLogger, systemClock } from '@nightporter/runtime';
import { expect, it } from 'vitest';
import { createWebhookSender } from '../senders/webhook.js';
import { DeliveryLoop } from './loop.js';
import type { ClaimedNotification, DeliveryVerdict } from './ports.js';

const notification = {
  ...{ _id: 'key 1', channel: 'webhook', recipient: 'ada', orderId: 'order 1', eventId: 'event 1', revision: 1 },
  ...{ eventType: 'OrderPaid', occurredAt: '2026-01-02T03:04:05.006Z', subject: 'paid', text: 'a text', attempts: 1 },
} as ClaimedNotification;

/** An address where nobody listens. */
async function deadUrl(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}/hook`;
}

/** What becomes of one notification that is sent to `url`. */
async function verdictOf(url: string): Promise<DeliveryVerdict> {
  const waiting = [notification];
  let settled: (verdict: DeliveryVerdict) => void = () => undefined;
  const verdict = new Promise<DeliveryVerdict>((resolve) => (settled = resolve));
  const loop = new DeliveryLoop({
    queue: {
      claimDue: () => Promise.resolve(waiting.splice(0)),
      settle: (_claimed, outcome) => {
        settled(outcome);
        return Promise.resolve();
      },
      measure: () => Promise.resolve({ pending: 0, dead: 0, unserved: 0 }),
    },
    senders: { webhook: createWebhookSender({ url, token: null }) },
    clock: systemClock,
    random: () => 0,
    logger: createLogger({ name: 'test', level: 'silent' }),
    ...{ deliveriesMax: 1, pollMs: 50, claimMs: 5_000, sendTimeoutMs: 2_000, drainMs: 2_000 },
    ...{ attemptsMax: 4, retryFirstMs: 300, retryCapMs: 1_000 },
  });
  const run = loop.run();
  try {
    return await verdict;
  } finally {
    await loop.stop();
    await run;
  }
}

it('A webhook that nobody listens to is tried again, and it is on record that the connection was refused', async () => {
  expect(await verdictOf(await deadUrl())).toMatchObject({
    kind: 'retry',
    reason: expect.stringContaining('ECONNREFUSED') as string,
  });
});
