import type { Delivery } from '@nightporter/consumer';
import { createSubscriber, deadLetterTopic } from '@nightporter/rocketmq';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms } from '../../e2e/programs.js';
import { envelopeIn, receiveAll } from '../../integration/rocketmq-samples.js';
import { showFigures } from '../../support/figures.js';
import { createGroup, createTopic, sharedStack, uniqueName } from '../../support/stack.js';
import { JOURNAL_PROGRAMS, openJournalGroup, statusOf, untilSettled } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';

const HEALTHY = 10;
const POISONED = 3;
const ATTEMPTS = 2;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

/** Reads a topic as a stranger would, from what is sent from now on. */
async function openReader(topic: string): Promise<(count: number) => Promise<readonly Delivery[]>> {
  const group = await createGroup({ name: uniqueName('reader'), topics: [topic] });
  const { rocketmqEndpoints: endpoints } = sharedStack();
  const reader = await createSubscriber({ endpoints, group, topic, waitMs: 1_000 });
  world.atEnd(() => reader.close());
  return (count) => receiveAll(reader, { count, limitMs: 60_000 });
}

it('a worker that is to copy dead letters does not start where their topic is missing, and says the command', async () => {
  world = await openJournalWorld();
  const group = await openJournalGroup(world, { settings: { DEAD_LETTER_COPIES: 'true' } });
  await expect(group.startWorker()).rejects.toThrow(
    new RegExp(`no topic ${deadLetterTopic(world.topic)}.*mqadmin updateTopic`, 's'),
  );
});

it('each dead letter is copied to its topic with group, reason and attempts, its body as it was sent, while the others apply', async (context) => {
  world = await openJournalWorld();
  const copyTopic = await createTopic({ name: deadLetterTopic(world.topic) });
  const [originals, copies] = [await openReader(world.topic), await openReader(copyTopic)];
  const settings = { DEAD_LETTER_COPIES: 'true', ATTEMPTS_MAX: String(ATTEMPTS) };
  const group = await openJournalGroup(world, { settings });
  const worker = await group.startWorker();
  const poisoned = await world.commit(
    Array.from({ length: POISONED }, (_, index) => ({
      aggregateId: `poisoned${index}`,
      orders: { failures: 1_000_000 },
    })),
  );
  await world.commit(Array.from({ length: HEALTHY }, (_, index) => ({ aggregateId: `healthy${index}` })));
  await untilSettled(group, HEALTHY, 60_000);
  const sent = new Map(
    (await originals(HEALTHY + POISONED)).map((delivery) => [envelopeIn(delivery).eventId as string, delivery]),
  );
  const received = await copies(POISONED);
  for (const copy of received) {
    const original = sent.get(envelopeIn(copy).eventId)!;
    expect(Buffer.from(copy.body).equals(Buffer.from(original.body))).toBe(true);
    expect(copy.properties).toMatchObject({
      'np-digest': original.properties['np-digest'],
      'np-dead-group': group.group,
      'np-dead-code': 'NP_HANDLER_FAILED',
      'np-dead-reason': expect.stringContaining('told to fail') as string,
      'np-dead-attempts': String(ATTEMPTS),
      'np-dead-topic': world.topic,
      'np-dead-message-id': original.messageId,
    });
  }
  expect(received.map((copy) => envelopeIn(copy).eventId).sort()).toEqual([...poisoned].sort());
  showFigures(context, { healthy: HEALTHY, 'dead letters': POISONED, copies: received.length });
  expect(await group.parked.countDocuments({ state: 'dead' })).toBe(POISONED);
  expect(await statusOf(worker)).toMatchObject({ applied: HEALTHY, deadLettersCopied: POISONED });
});
