import {
  createPublisher,
  createSubscriber,
  type RocketmqPublisher,
  type RocketmqSubscriber,
} from '@nightporter/rocketmq';
import { brokerConformance } from '@nightporter/testing/conformance';
import { afterEach } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';

const open: (RocketmqPublisher | RocketmqSubscriber)[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()));
});

brokerConformance('RocketMQ', async () => {
  const { rocketmqEndpoints: endpoints } = sharedStack();
  const topic = await createTopic({ name: uniqueName('conformance'), queues: 4 });
  const publisher = await createPublisher({ endpoints, topics: [topic] });
  open.push(publisher);
  return {
    publisher,
    topic,
    subscribe: async (group) => {
      // The groups of the suite are unique within one process only.
      const name = await createGroup({ name: uniqueName(group), topics: [topic] });
      const subscriber = await createSubscriber({ endpoints, group: name, topic, waitMs: 1_000 });
      open.push(subscriber);
      return subscriber;
    },
    // The shared stack keeps to one second, where a broker as delivered keeps to ten.
    invisibleMsMin: 1_000,
    passTime: (byMs) => new Promise((resolve) => setTimeout(resolve, byMs)),
  };
});
