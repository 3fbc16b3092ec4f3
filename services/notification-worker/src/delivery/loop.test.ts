import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { NightporterError } from '@nightporter/protocol';
import { createLogger, createMetrics, systemClock, type MetricTable, type Metrics } from '@nightporter/runtime';
import { expect, it } from 'vitest';
import { DELIVERY_METRICS } from '../metrics-table.js';
import { createWebhookSender } from '../senders/webhook.js';
import { DeliveryLoop } from './loop.js';
import type { ClaimedNotification, DeliveryVerdict, QueueFigures } from './ports.js';

type Measure = () => Promise<QueueFigures>;
const EMPTY: QueueFigures = { pending: 0, dead: 0, unserved: 0, oldestPendingMs: null };

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

/** What becomes of one notification that is sent to `url`; what is told of the queue is `measured`. */
async function verdictOf(
  url: string,
  {
    metrics,
    measured = () => Promise.resolve(EMPTY),
  }: { metrics?: Pick<Metrics<MetricTable>, 'extend'>; measured?: Measure } = {},
): Promise<DeliveryVerdict> {
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
      measure: measured,
    },
    senders: { webhook: createWebhookSender({ url, token: null }) },
    clock: systemClock,
    random: () => 0,
    logger: createLogger({ name: 'test', level: 'silent' }),
    ...{ deliveriesMax: 1, pollMs: 50, claimMs: 5_000, sendTimeoutMs: 2_000, drainMs: 2_000 },
    ...{ attemptsMax: 4, retryFirstMs: 300, retryCapMs: 1_000 },
    ...(metrics === undefined ? {} : { metrics: metrics.extend(DELIVERY_METRICS) }),
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

function told(text: string): readonly string[] {
  const own = text.split('\n').filter((line) => line.startsWith('nightporter_delivery_') && !line.includes('_bucket'));
  return own.map((line) =>
    line
      .replace(/,?service="test"/, '')
      .replace('{,', '{')
      .replace('{}', ''),
  );
}

it('Attempts are counted by channel and outcome, and the queue is told as it is at the scrape', async () => {
  const metrics = createMetrics({}, { service: 'test', checks: {} });
  const measured = () => Promise.resolve({ pending: 2, dead: 1, unserved: 1, oldestPendingMs: 90_000 });
  await verdictOf(await deadUrl(), { metrics, measured });
  const lines = told((await metrics.read()).text);
  expect(lines).toEqual(
    expect.arrayContaining([
      'nightporter_delivery_attempts_total{channel="webhook",outcome="retry"} 1',
      'nightporter_delivery_attempts_total{channel="webhook",outcome="sent"} 0',
      'nightporter_delivery_attempt_duration_seconds_count{channel="webhook"} 1',
      'nightporter_delivery_notifications{state="dead"} 1',
      'nightporter_delivery_notifications{state="pending"} 2',
      'nightporter_delivery_oldest_pending_seconds 90',
      'nightporter_delivery_in_hand 0',
    ]),
  );
});

it('Figures of a queue that cannot be read are absent, and neither 0 nor the last ones', async () => {
  const metrics = createMetrics({}, { service: 'test', checks: {} });
  const answers: Measure[] = [() => Promise.resolve(EMPTY)];
  const away = new NightporterError('NP_STORE_UNAVAILABLE', 'the database is away');
  const measured: Measure = () => answers[0]?.() ?? Promise.reject(away);
  await verdictOf(await deadUrl(), { metrics, measured });
  expect(told((await metrics.read()).text)).toContain('nightporter_delivery_notifications{state="dead"} 0');
  answers.splice(0);
  const lines = told((await metrics.read()).text).join('\n');
  expect(lines).not.toMatch(/nightporter_delivery_(notifications|oldest)/);
  expect(lines).toContain('nightporter_delivery_attempts_total');
});
