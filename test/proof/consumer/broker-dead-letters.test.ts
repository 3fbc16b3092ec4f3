import { createDeadLetterSubscriber, createSubscriber } from '@nightporter/rocketmq';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { createGroup, sharedStack } from '../../support/stack.js';
import {
  JOURNAL_PROGRAMS,
  openJournalGroup,
  statusOf,
  untilSettled,
  type JournalGroup,
} from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { deadLettersOfBroker, expectAllOnce } from '../support/judge.js';
import { sized } from '../support/size.js';

const AGGREGATES = sized({ full: 40, small: 6 });
const VERSIONS = 3;
const NEVER_MS = 3_600_000;
const INVISIBLE_MS = 1_000;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

it('what the broker has given up is applied from the ledger, once and in order, and acknowledged among its dead letters', async (context) => {
  world = await openJournalWorld({ queues: 2 });
  // Only the broker's dead letters are left to bring anything.
  const settings = {
    GAP_WAIT_MS: String(NEVER_MS),
    LEDGER_SWEEP_EVERY_MS: String(NEVER_MS),
    LEDGER_LAG_MS: String(NEVER_MS),
  };
  const group = await openJournalGroup(world, { settings });
  const names = Array.from({ length: AGGREGATES }, (_, index) => `given-up${index}`);
  for (let version = 1; version <= VERSIONS; version += 1) {
    await world.commit(names.map((aggregateId) => ({ aggregateId })));
  }
  const committed = AGGREGATES * VERSIONS;
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === committed;
  await until('all counts as published', isPublished, 60_000);
  const givenUp = await receiveUntilGivenUp(group, committed);
  const worker = await group.startWorker();
  await untilSettled(group, committed, 60_000);
  const isDone = async () => (await unreadDeadLetters(group)) === 0;
  await until('every dead letter of the broker is acknowledged', isDone, 60_000);
  const verdict = await expectAllOnce(world, group, { givenUp });
  const status = await statusOf(worker);
  showFigures(context, {
    committed,
    'given up by the broker': givenUp,
    effects: verdict.effects,
    lost: verdict.lost,
    doubled: verdict.doubled,
    misordered: verdict.misordered,
  });
  expect(status).toMatchObject({ brokerDeadLetters: givenUp, received: 0, applied: committed });
});

it('a group that the broker has given nothing up for has no such topic, and that is no failure', async () => {
  world = await openJournalWorld();
  const group = await openJournalGroup(world);
  const { rocketmqEndpoints: endpoints } = sharedStack();
  const reader = createDeadLetterSubscriber({ endpoints, group: group.group });
  world.atEnd(() => reader.close());
  expect(await reader.receive({ max: 32, invisibleMs: INVISIBLE_MS })).toEqual([]);
});

/** Takes the messages again and again, until the broker has spent their deliveries. Returns how many it keeps. */
async function receiveUntilGivenUp(group: JournalGroup, count: number): Promise<number> {
  await createGroup({ name: group.group, retryMaxTimes: 1 });
  const { rocketmqEndpoints: endpoints } = sharedStack();
  const careless = await createSubscriber({ endpoints, group: group.group, topic: world.topic, waitMs: 1_000 });
  const isGivenUp = async () => {
    await careless.receive({ max: 32, invisibleMs: INVISIBLE_MS });
    return (await deadLettersOfBroker(group)) >= count;
  };
  await until('the broker has given up everything', isGivenUp, 120_000);
  await careless.close();
  await createGroup({ name: group.group });
  return deadLettersOfBroker(group);
}

async function unreadDeadLetters({ group }: JournalGroup): Promise<number> {
  const queues = await sharedStack().offsets({ topic: `%DLQ%${group}`, group });
  return queues.reduce((sum, { committedOffset = 0, maxOffset }) => sum + maxOffset - committedOffset, 0);
}
