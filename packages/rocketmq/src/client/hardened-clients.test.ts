import { afterEach, expect, it, vi } from 'vitest';
import { HardenedConsumer, HardenedProducer } from './hardened-clients.js';
import { startWithin, stopWithin } from './lifecycle.js';

const clients: (HardenedProducer | HardenedConsumer)[] = [];
const endpoints = '127.0.0.1:1';

afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of clients.splice(0)) await stopWithin(client, 1_000);
});

/** The intervals that were started and not stopped since. */
function watchIntervals(): () => unknown[] {
  const started = vi.spyOn(globalThis, 'setInterval');
  const stopped = vi.spyOn(globalThis, 'clearInterval');
  return () => {
    const ended = new Set(stopped.mock.calls.map(([timer]) => timer));
    return started.mock.results.map(({ value }) => value as NodeJS.Timeout).filter((timer) => !ended.has(timer));
  };
}

it('A client that was only created holds no timer', () => {
  const running = watchIntervals();
  clients.push(new HardenedProducer({ endpoints }, 't'));
  clients.push(new HardenedConsumer({ endpoints }, { group: 'g', topic: 't', waitMs: 1_000 }));
  expect(running()).toEqual([]);
});

it('A start that fails tells why, at once, and leaves no timer', async () => {
  const running = watchIntervals();
  const producer = new HardenedProducer({ endpoints }, 't');
  clients.push(producer);
  const started = performance.now();
  const error = await startWithin(producer, 10_000).catch((reason: unknown) => reason);
  expect(String((error as Error).cause)).toContain('Failed to fetch topic routes');
  expect(performance.now() - started).toBeLessThan(2_000);
  expect(running()).toEqual([]);
});

it('Requests are signed with the credentials that were given, and only then', () => {
  const credentials = { accessKey: 'key', accessSecret: 'secret', securityToken: 'token' };
  const signed = new HardenedProducer({ endpoints, credentials }, 't');
  const unsigned = new HardenedProducer({ endpoints }, 't');
  clients.push(signed, unsigned);
  const [authorization] = signed.getRequestMetadata().get('authorization');
  expect(authorization).toMatch(
    /^MQv2-HMAC-SHA1 Credential=key, SignedHeaders=x-mq-date-time, Signature=[0-9A-F]{40}$/,
  );
  expect(signed.getRequestMetadata().get('x-mq-session-token')).toEqual(['token']);
  expect(unsigned.getRequestMetadata().get('authorization')).toEqual([]);
});
