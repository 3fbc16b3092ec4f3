import { PublishError } from '@nightporter/relay';
import { createPublisher, createSubscriber, type RocketmqPublisher } from '@nightporter/rocketmq';
import type { MessageView } from 'rocketmq-client-nodejs';
import { afterEach, describe, expect, it } from 'vitest';
import { showFigures } from '../support/figures.js';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { startBrokerProxy, type BrokerProxy } from './rocketmq-proxy.js';
import { envelopeIn, publishRequest, receiveAll, untilGiven } from './rocketmq-samples.js';

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});

async function publisherOf(topics: string[], proxy?: BrokerProxy): Promise<RocketmqPublisher> {
  const through = proxy && { endpoints: proxy.endpoints, alwaysUseEndpoints: true };
  const publisher = await createPublisher({ endpoints: sharedStack().rocketmqEndpoints, topics, ...through });
  open.push(publisher);
  return publisher;
}

/** A subscriber that gets everything that is sent from now on. */
async function subscriberOf(topic: string) {
  const group = await createGroup({ name: uniqueName('group'), topics: [topic] });
  const subscriber = await createSubscriber({
    endpoints: sharedStack().rocketmqEndpoints,
    group,
    topic,
    waitMs: 1_000,
  });
  open.push(subscriber);
  return subscriber;
}

async function failureOf(publisher: RocketmqPublisher, topic: string, payload = {}): Promise<PublishError | null> {
  try {
    await publisher.publish(publishRequest({ topic, payload }));
    return null;
  } catch (error) {
    if (error instanceof PublishError) return error;
    throw error;
  }
}

it('A publisher of three topics is ready within ten seconds, twenty times', async (context) => {
  const topics = [];
  let slowestMs = 0;
  for (const prefix of ['one', 'two', 'three']) topics.push(await createTopic({ name: uniqueName(prefix) }));
  for (let round = 1; round <= 20; round += 1) {
    const started = performance.now();
    const publisher = await createPublisher({ endpoints: sharedStack().rocketmqEndpoints, topics });
    await Promise.all(topics.map((topic) => publisher.publish(publishRequest({ topic }))));
    const readyMs = performance.now() - started;
    slowestMs = Math.max(slowestMs, readyMs);
    expect(readyMs).toBeLessThan(10_000);
    await publisher.close();
  }
  showFigures(context, { starts: 20, topics: topics.length, 'ms of the slowest': Math.round(slowestMs) });
});

describe('a topic that is wrong', () => {
  it('is told as such while others flow, and is found as soon as it is there', async () => {
    const missing = uniqueName('missing');
    const there = await createTopic({ name: uniqueName('there') });
    const publisher = await publisherOf([missing, there]);
    expect(await failureOf(publisher, missing)).toMatchObject({ failure: 'topic', answered: true });
    expect(await failureOf(publisher, there)).toBeNull();
    await createTopic({ name: missing });
    await untilGiven(async () => ((await failureOf(publisher, missing)) === null ? true : null), {
      limitMs: 40_000,
      what: 'a send to the topic that is there now',
    });
  });

  it('because of its message type is told as such, and is taken as soon as it is mended', async () => {
    const topic = await createTopic({ name: uniqueName('normal'), type: 'NORMAL' });
    const publisher = await publisherOf([topic]);
    const failure = await failureOf(publisher, topic);
    expect(failure).toMatchObject({ failure: 'topic', answered: true, code: 'NP_PUBLISH_FAILED' });
    expect(failure?.message).toContain(topic);
    await createTopic({ name: topic, type: 'FIFO' });
    await untilGiven(async () => ((await failureOf(publisher, topic)) === null ? true : null), {
      // The client itself would look at the route again after 30 s at the earliest.
      limitMs: 20_000,
      what: 'a send to the topic that is FIFO now',
    });
  });

  it('because it cannot be written is told as such, whether at the start or later', async () => {
    const topic = await createTopic({ name: uniqueName('writable') });
    const publisher = await publisherOf([topic]);
    expect(await failureOf(publisher, topic)).toBeNull();
    await createTopic({ name: topic, writable: false });
    const failure = await untilGiven(() => failureOf(publisher, topic), { limitMs: 40_000, what: 'a refusal' });
    expect(failure).toMatchObject({ failure: 'topic', answered: true });
    const later = await publisherOf([topic]);
    expect(await failureOf(later, topic)).toMatchObject({ failure: 'topic', answered: true });
    await createTopic({ name: topic });
    await untilGiven(async () => ((await failureOf(publisher, topic)) === null ? true : null), {
      limitMs: 40_000,
      what: 'a send to the topic that can be written again',
    });
  });
});

it('An event over the broker’s 4 MiB is refused for good, the next one is sent, and one just below arrives whole', async () => {
  const topic = await createTopic({ name: uniqueName('large') });
  const publisher = await publisherOf([topic]);
  const subscriber = await subscriberOf(topic);
  const mebibytes = (count: number) => ({ text: 'x'.repeat(count * 1024 * 1024) });
  expect(await failureOf(publisher, topic, mebibytes(4))).toMatchObject({ failure: 'permanent', answered: true });
  expect(await failureOf(publisher, topic, mebibytes(3.99))).toBeNull();
  const [delivery] = await receiveAll(subscriber, { count: 1 });
  expect(envelopeIn(delivery!).data).toEqual(mebibytes(3.99));
});

it.each([
  ['a space', 'a b'],
  ['slashes and colons', 'a/b:c'],
  ['emoji', '🌙 night'],
  ['200 characters', 'x'.repeat(200)],
  ['100 emoji', '🌙'.repeat(100)],
])(
  'An event of an aggregate whose id has %s can be looked up by its keys and stays in its message group',
  async (_what, aggregateId) => {
    const topic = await createTopic({ name: uniqueName('ids') });
    const publisher = await publisherOf([topic]);
    const subscriber = await subscriberOf(topic);
    const requests = [1, 2, 3].map((version) => publishRequest({ topic, aggregateId, version }));
    for (const request of requests) await publisher.publish(request);
    const deliveries = await receiveAll(subscriber, { count: 3 });
    expect(deliveries.map((delivery) => envelopeIn(delivery).aggregateVersion)).toEqual([1, 2, 3]);
    expect(deliveries.map((delivery) => envelopeIn(delivery).aggregateId)).toEqual([
      aggregateId,
      aggregateId,
      aggregateId,
    ]);
    const views = deliveries.map(({ receipt }) => (receipt as { view: MessageView }).view);
    const key = `tests/sample/${encodeURIComponent(aggregateId)}`;
    expect(views.map(({ keys }) => keys)).toEqual(requests.map(({ row }) => [row.eventId, key]));
    expect(views.map(({ messageGroup }) => messageGroup)).toEqual(requests.map(({ row }) => row.eventKey));
  },
);

it('A send whose answer is lost is transient and unanswered, and its repeat keeps the order', async (context) => {
  const topic = await createTopic({ name: uniqueName('lost') });
  const proxy = await startBrokerProxy(sharedStack().rocketmqEndpoints);
  open.push(proxy);
  const publisher = await publisherOf([topic], proxy);
  const subscriber = await subscriberOf(topic);
  const [first, second] = [1, 2].map((version) => publishRequest({ topic, version }));
  proxy.loseAnswerTo(first!.row.eventId);
  await expect(publisher.publish(first!)).rejects.toMatchObject({ failure: 'transient', answered: false });
  await untilGiven(
    () =>
      publisher.publish(first!).catch((error: unknown) => {
        expect(error).toMatchObject({ failure: 'transient' });
        return null;
      }),
    { limitMs: 20_000, what: 'the repeat' },
  );
  await publisher.publish(second!);
  const deliveries = await receiveAll(subscriber, { count: 3 });
  expect(deliveries.map((delivery) => envelopeIn(delivery).eventId)).toEqual([
    first!.row.eventId,
    first!.row.eventId,
    second!.row.eventId,
  ]);
  showFigures(context, { events: 2, 'answers lost': 1, deliveries: deliveries.length, misordered: 0 });
});

it('A publisher that was closed refuses, and says that nothing was sent', async () => {
  const topic = await createTopic({ name: uniqueName('closed') });
  const publisher = await publisherOf([topic]);
  await publisher.close();
  expect(await failureOf(publisher, topic)).toMatchObject({ failure: 'transient', answered: true });
});
