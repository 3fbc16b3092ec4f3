import { BrokerError } from '@nightporter/consumer';
import { createPublisher, createSubscriber, type SubscriberOptions } from '@nightporter/rocketmq';
import { SimpleConsumer } from 'rocketmq-client-nodejs';
import { afterEach, expect, it, vi } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { startBrokerProxy } from './rocketmq-proxy.js';
import { envelopeIn, publishRequest, receiveAll, untilGiven } from './rocketmq-samples.js';

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of open.splice(0)) await client.close();
});

async function subscriberOf(options: Omit<SubscriberOptions, 'endpoints'> & { endpoints?: string }) {
  const subscriber = await createSubscriber({ endpoints: sharedStack().rocketmqEndpoints, waitMs: 1_000, ...options });
  open.push(subscriber);
  return subscriber;
}

/** Sends `count` events of several aggregates, one after another, to a topic that a group reads from its beginning. */
async function filledTopic({ queues, count }: { queues: number; count: number }) {
  const topic = await createTopic({ name: uniqueName('filled'), queues });
  const group = await createGroup({ name: uniqueName('group'), topics: [topic] });
  const publisher = await createPublisher({ endpoints: sharedStack().rocketmqEndpoints, topics: [topic] });
  open.push(publisher);
  const requests = Array.from({ length: count }, (_, index) =>
    publishRequest({ topic, aggregateId: `a${index % 5}`, version: 1 + Math.floor(index / 5) }),
  );
  for (const request of requests) await publisher.publish(request);
  return { topic, group, eventIds: requests.map(({ row }) => row.eventId) };
}

it('One result holds the messages of a queue in the order in which they were sent', async () => {
  const { topic, group, eventIds } = await filledTopic({ queues: 1, count: 30 });
  const subscriber = await subscriberOf({ group, topic });
  const deliveries = await subscriber.receive({ max: 32, invisibleMs: 60_000 });
  expect(deliveries.map((delivery) => envelopeIn(delivery).eventId)).toEqual(eventIds);
});

it('Deliveries from several queues are acknowledged with one request, and are gone', async () => {
  const { topic, group } = await filledTopic({ queues: 8, count: 30 });
  const subscriber = await subscriberOf({ group, topic });
  const deliveries = await receiveAll(subscriber, { count: 30 });
  const requests = vi.spyOn(SimpleConsumer.prototype, 'ackMessageViaRpc');
  await subscriber.acknowledge(deliveries);
  expect(requests).toHaveBeenCalledTimes(1);
  await subscriber.acknowledge([]);
  expect(requests).toHaveBeenCalledTimes(1);
  const lag = await untilGiven(
    async () => {
      const queues = await sharedStack().offsets({ topic, group });
      return queues.every((queue) => queue.lag === 0) ? queues : null;
    },
    { limitMs: 10_000, what: 'everything acknowledged' },
  );
  expect(lag).toHaveLength(8);
});

it('What was extended stays away beyond its first invisibility, and may be acknowledged by the old delivery, too', async () => {
  const { topic, group } = await filledTopic({ queues: 1, count: 4 });
  const subscriber = await subscriberOf({ group, topic });
  const deliveries = await receiveAll(subscriber, { count: 4, invisibleMs: 1_500 });
  await subscriber.extend(deliveries, 30_000);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(await subscriber.receive({ max: 32, invisibleMs: 1_500 })).toEqual([]);
  await subscriber.acknowledge(deliveries);
  const [queue] = await untilGiven(
    async () => {
      const queues = await sharedStack().offsets({ topic, group });
      return queues[0]?.lag === 0 ? queues : null;
    },
    { limitMs: 10_000, what: 'everything acknowledged' },
  );
  expect(queue?.committedOffset).toBe(4);
});

it('An extension that comes too late is no error', async () => {
  const { topic, group } = await filledTopic({ queues: 1, count: 1 });
  const subscriber = await subscriberOf({ group, topic });
  const deliveries = await receiveAll(subscriber, { count: 1, invisibleMs: 1_000 });
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await expect(subscriber.extend(deliveries, 10_000)).resolves.toHaveLength(1);
});

it('Properties are those that were sent, and nothing of the broker’s', async () => {
  const { topic, group } = await filledTopic({ queues: 1, count: 1 });
  const subscriber = await subscriberOf({ group, topic });
  const [delivery] = await receiveAll(subscriber, { count: 1 });
  expect(Object.keys(delivery!.properties).sort()).toEqual(
    ['np-digest', 'np-event-version', 'np-form', 'np-relay-epoch', 'np-source'].sort(),
  );
});

it('Messages whose result was lost on the way come again at once, although their queue is still locked', async () => {
  const { topic, group, eventIds } = await filledTopic({ queues: 1, count: 3 });
  const proxy = await startBrokerProxy(sharedStack().rocketmqEndpoints);
  open.push(proxy);
  const subscriber = await subscriberOf({ group, topic, endpoints: proxy.endpoints, alwaysUseEndpoints: true });
  // The next request that names the group is the receive.
  proxy.loseAnswerTo(group);
  await expect(subscriber.receive({ max: 32, invisibleMs: 60_000 })).rejects.toThrow(BrokerError);
  const deliveries = await untilGiven(
    () =>
      subscriber.receive({ max: 32, invisibleMs: 60_000 }).then(
        (some) => (some.length > 0 ? some : null),
        () => null,
      ),
    { limitMs: 20_000, what: 'the lost messages' },
  );
  expect(deliveries.map((delivery) => envelopeIn(delivery).eventId)).toEqual(eventIds);
  await subscriber.acknowledge(deliveries);
});

it('A close ends a pending receive at once', async () => {
  const { topic, group } = await filledTopic({ queues: 1, count: 0 });
  const subscriber = await subscriberOf({ group, topic, waitMs: 20_000 });
  const started = performance.now();
  const pending = subscriber.receive({ max: 32, invisibleMs: 10_000 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  await subscriber.close();
  expect(await pending).toEqual([]);
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(await subscriber.receive({ max: 32, invisibleMs: 10_000 })).toEqual([]);
});

it('A group that is missing is told soon, and is read as soon as it is there', async () => {
  const topic = await createTopic({ name: uniqueName('topic') });
  const group = uniqueName('missing');
  const started = performance.now();
  const subscriber = await subscriberOf({ group, topic });
  await expect(subscriber.receive({ max: 1, invisibleMs: 10_000 })).rejects.toThrow(/group not found/);
  expect(performance.now() - started).toBeLessThan(5_000);
  await createGroup({ name: group, topics: [topic] });
  const received = await untilGiven(() => subscriber.receive({ max: 1, invisibleMs: 10_000 }).catch(() => null), {
    limitMs: 20_000,
    what: 'a receive of the group that is there now',
  });
  expect(received).toEqual([]);
});

it('A topic that is missing, and a broker that is not there, are broker errors', async () => {
  const group = await createGroup({ name: uniqueName('group') });
  const missing = await subscriberOf({ group, topic: uniqueName('missing') });
  await expect(missing.receive({ max: 1, invisibleMs: 10_000 })).rejects.toThrow(BrokerError);
  const unreachable = await subscriberOf({ group, topic: 'any', endpoints: '127.0.0.1:1' });
  await expect(unreachable.receive({ max: 1, invisibleMs: 10_000 })).rejects.toThrow(/ECONNREFUSED/);
});
