import { PassThrough } from 'node:stream';
import { beforeEach, expect, test } from 'vitest';
import { rocketMqAdmin } from './admin.js';
import { Conversation } from './conversation.js';

let requests: PassThrough;
let answers: PassThrough;
let conversation: Conversation;

beforeEach(() => {
  requests = new PassThrough();
  answers = new PassThrough();
  conversation = new Conversation({ requests, answers });
});

/** What was asked so far. */
function asked(): unknown[] {
  const lines = ((requests.read() as Buffer | null)?.toString() ?? '').trim().split('\n');
  return lines.map((line) => JSON.parse(line) as unknown);
}

function answer(message: object): void {
  answers.write(`${JSON.stringify(message)}\n`);
}

test('readiness is heard among lines that are not for us', async () => {
  answers.write('OpenJDK 64-Bit Server VM warning: something\n');
  answer({ event: 'ready' });
  await conversation.ready;
});

test('answers find their questions in any order', async () => {
  const first = conversation.ask({ operation: 'offsets', topic: 'a' });
  const second = conversation.ask({ operation: 'offsets', topic: 'b' });
  expect(asked()).toEqual([
    { id: 1, operation: 'offsets', topic: 'a' },
    { id: 2, operation: 'offsets', topic: 'b' },
  ]);
  answer({ id: 2, result: ['b'] });
  answer({ id: 1, result: ['a'] });
  expect(await Promise.all([first, second])).toEqual([['a'], ['b']]);
});

test('a refusal is an error that names the operation', async () => {
  const asking = conversation.ask({ operation: 'createTopic', name: 'a' });
  answer({ id: 1, error: 'java.lang.IllegalArgumentException: no' });
  await expect(asking).rejects.toMatchObject({
    code: 'NP_EMBEDDED_CONTROL_FAILED',
    message: 'createTopic failed at the broker: java.lang.IllegalArgumentException: no',
  });
});

test('whoever waits when the process ends is told, and whoever asks later too', async () => {
  const waiting = conversation.ask({ operation: 'offsets' });
  conversation.end('RocketMQ ended with SIGKILL');
  await expect(waiting).rejects.toThrow(/offsets failed at the broker: RocketMQ ended with SIGKILL/);
  await expect(conversation.ask({ operation: 'rewind' })).rejects.toThrow(/RocketMQ ended with SIGKILL/);
});

test('the defaults are an ordered topic and an ordered group that never gives a message up', async () => {
  const sent: unknown[] = [];
  const admin = rocketMqAdmin((request) => Promise.resolve(sent.push(request)));
  await admin.createTopic({ name: 't' });
  await admin.createGroup({ name: 'g' });
  await admin.rewind({ topic: 't', group: 'g' });
  expect(sent).toEqual([
    { operation: 'createTopic', name: 't', type: 'FIFO', queues: 8, writable: true },
    { operation: 'createGroup', name: 'g', ordered: true, retryMaxTimes: 1_000_000, topics: [] },
    { operation: 'rewind', topic: 't', group: 'g', offset: 0, queueId: -1 },
  ]);
});

test('a group without a position in a queue has no lag there', async () => {
  const queues = [
    { queueId: 0, minOffset: 0, maxOffset: 5, committedOffset: 2 },
    { queueId: 1, minOffset: 0, maxOffset: 5, committedOffset: -1 },
  ];
  const admin = rocketMqAdmin(() => Promise.resolve(queues));
  expect(await admin.offsets({ topic: 't', group: 'g' })).toEqual([
    { queueId: 0, minOffset: 0, maxOffset: 5, committedOffset: 2, lag: 3 },
    { queueId: 1, minOffset: 0, maxOffset: 5, committedOffset: undefined, lag: undefined },
  ]);
});
