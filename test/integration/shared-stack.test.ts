import { expect, inject, test } from 'vitest';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';

test('the shared stack gives its addresses and takes topics and groups from a test process', async () => {
  expect(inject('mongodbUri')).toMatch(/^mongodb:/);
  const topic = await createTopic({ name: uniqueName('topic'), queues: 3 });
  const group = await createGroup({ name: uniqueName('group'), topics: [topic] });
  const offsets = await sharedStack().offsets({ topic, group });
  expect(offsets.map(({ queueId, lag }) => ({ queueId, lag }))).toEqual([
    { queueId: 0, lag: 0 },
    { queueId: 1, lag: 0 },
    { queueId: 2, lag: 0 },
  ]);
});

test('a refusal of the broker reaches the test process', async () => {
  await expect(sharedStack().offsets({ topic: 'no-such-topic' })).rejects.toThrow(/no topic no-such-topic/);
});
