import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { startRocketMq, type RocketMqServer } from '@nightporter/embedded';
import { createPublisher, createSubscriber } from '@nightporter/rocketmq';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { showFigures } from '../support/figures.js';
import { build } from './embedded-processes.js';
import { runProcess, type FinishedProcess } from './rocketmq-process.js';
import { startBrokerProxy } from './rocketmq-proxy.js';
import { envelopeIn, publishRequest, untilGiven } from './rocketmq-samples.js';

/** A server of its own, since it is killed. */
let server: RocketMqServer;
const topic = 'fault-events';
const open: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  await build('packages/rocketmq');
  server = await startRocketMq({
    topics: [{ name: topic, queues: 2 }],
    groups: ['restart', 'stall', 'exit'].map((name) => ({ name, topics: [topic] })),
  });
});

afterAll(async () => {
  await server.stop();
});

afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

it('After a restart of the broker and its proxy, publishing and consuming resume within 30 s in the same process', async (context) => {
  const { endpoints } = server;
  const publisher = await createPublisher({ endpoints, topics: [topic] });
  const subscriber = await createSubscriber({ endpoints, group: 'restart', topic, waitMs: 1_000 });
  open.push(publisher, subscriber);
  const versions: number[] = [];
  const consume = async (): Promise<void> => {
    const deliveries = await subscriber.receive({ max: 32, invisibleMs: 10_000 });
    versions.push(...deliveries.map((delivery) => envelopeIn(delivery).aggregateVersion));
    await subscriber.acknowledge(deliveries);
  };
  const publish = (version: number) => publisher.publish(publishRequest({ topic, version }));

  await publish(1);
  while (versions.length === 0) await consume();
  await server.kill();
  await expect(publish(2)).rejects.toMatchObject({ failure: 'transient' });
  await expect(consume()).rejects.toMatchObject({ code: 'NP_BROKER_UNAVAILABLE' });
  await server.restart();
  const restarted = performance.now();

  await untilGiven(() => publish(2).catch(() => null), { limitMs: 30_000, what: 'publishing' });
  const publishedMs = Math.round(performance.now() - restarted);
  await untilGiven(
    async () => {
      await consume().catch(() => undefined);
      return versions.includes(2) ? true : null;
    },
    { limitMs: 30_000 - publishedMs, what: 'consuming' },
  );
  // Redeliveries are allowed; the order of first deliveries is not negotiable.
  expect([...new Set(versions)]).toEqual([1, 2]);
  showFigures(context, {
    'ms until published': publishedMs,
    'ms until consumed': Math.round(performance.now() - restarted),
    misordered: 0,
  });
});

it('Connections that are dead but open are noticed, and replaced within 30 s', async () => {
  const proxy = await startBrokerProxy(server.endpoints);
  const through = { endpoints: proxy.endpoints, alwaysUseEndpoints: true };
  const publisher = await createPublisher({ ...through, topics: [topic] });
  const subscriber = await createSubscriber({ ...through, group: 'stall', topic, waitMs: 1_000 });
  open.push(publisher, subscriber, proxy);
  await publisher.publish(publishRequest({ topic }));
  proxy.stall();
  await Promise.all([
    untilGiven(() => publisher.publish(publishRequest({ topic })).catch(() => null), {
      limitMs: 30_000,
      what: 'publishing',
    }),
    untilGiven(
      async () => {
        const deliveries = await subscriber.receive({ max: 32, invisibleMs: 10_000 }).catch(() => []);
        return deliveries.length > 0 ? deliveries : null;
      },
      { limitMs: 40_000, what: 'consuming' },
    ),
  ]);
});

describe('A process', () => {
  /** Nothing on standard error, nothing in the home folder, and an end by itself. */
  function expectCleanEnd(finished: FinishedProcess, withinMs: number): void {
    expect(finished.errors).toBe('');
    expect(finished.code).toBe(0);
    expect(finished.home).toEqual([]);
    expect(finished.lingeredMs).toBeLessThan(withinMs);
  }

  const bothOpen = `
    const publisher = await createPublisher({ endpoints, topics: [topic] });
    const subscriber = await createSubscriber({ endpoints, group, topic });
    await publisher.publish(request);
  `;

  it('ends by itself after a close, and has written no log file', async () => {
    const run = `${bothOpen} say('up'); await told(); await publisher.close(); await subscriber.close(); say('closed');`;
    const finished = await runProcess({ endpoints: server.endpoints, topic, group: 'exit', run });
    expect(finished.lines).toEqual(['up', 'closed']);
    expectCleanEnd(finished, 2_000);
  });

  it('closes within its deadline and ends while the broker is down', async () => {
    const run = `${bothOpen}
      const pending = subscriber.receive({ max: 32, invisibleMs: 10_000 }).catch(() => undefined);
      say('up');
      await told();
      const refused = await publisher.publish(request).catch((error) => error.failure);
      say(refused);
      say(String(await timed(() => Promise.all([publisher.close(), subscriber.close()]))));`;
    const finished = await runProcess({ endpoints: server.endpoints, topic, group: 'exit', run }, () => server.kill());
    await server.restart();
    expect(finished.lines[1]).toBe('transient');
    expect(Number(finished.lines[2])).toBeLessThan(3_500);
    expectCleanEnd(finished, 2_000);
  });

  it('closes within its deadline and ends while the broker hangs', async () => {
    const run = `${bothOpen}
      const pending = subscriber.receive({ max: 32, invisibleMs: 10_000 }).catch(() => undefined);
      say('up');
      await told();
      const sending = publisher.publish(request).catch((error) => error.answered);
      say(String(await timed(() => Promise.all([publisher.close(), subscriber.close()]))));
      say(String(await sending));`;
    const finished = await runProcess({ endpoints: server.endpoints, topic, group: 'exit', run }, () => {
      server.pause();
      return Promise.resolve();
    });
    server.resume();
    expect(Number(finished.lines[1])).toBeLessThan(3_500);
    expect(finished.lines[2]).toBe('false');
    expectCleanEnd(finished, 2_000);
  });

  it('survives what happens to its streams after a close', async () => {
    const run = `${bothOpen}
      await Promise.all([publisher.close(), subscriber.close()]);
      say('closed');
      await told();
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      say('alive');`;
    const finished = await runProcess({ endpoints: server.endpoints, topic, group: 'exit', run }, async () => {
      await server.kill();
      await server.restart();
    });
    expect(finished.lines).toEqual(['closed', 'alive']);
    expectCleanEnd(finished, 2_000);
  });

  it('is held by nothing of a start that failed, although nobody has closed anything', async () => {
    const sockets = new Set<Socket>();
    const mute = createServer((socket) => sockets.add(socket)).listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const endpoints = `127.0.0.1:${(mute.address() as AddressInfo).port}`;
    const run = `
      const options = { endpoints, startTimeoutMs: 1_500, requestTimeoutMs: 60_000 };
      const publisher = await createPublisher({ ...options, topics: [topic] });
      const subscriber = await createSubscriber({ ...options, group, topic });
      say(await publisher.publish(request).catch((error) => error.failure + ' ' + error.answered));
      say('failed');
      await told();`;
    const finished = await runProcess({ endpoints, topic, group: 'exit', run });
    for (const socket of sockets) socket.destroy();
    mute.close();
    expect(finished.lines).toEqual(['transient true', 'failed']);
    expectCleanEnd(finished, 2_000);
  });
});
