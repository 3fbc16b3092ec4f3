import { createDeadLetters } from '@nightporter/ledger';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled, type JournalGroup } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { journalCatalogue } from '../support/programs/journal.js';
import { wrongClock } from '../support/wrong-clock.js';

const RETRY_DELAY_MS = 1_500;
const HOUR_MS = 3_600_000;
const LIMIT_MS = 60_000;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
beforeEach(async () => {
  world = await openJournalWorld();
});
afterEach(() => world.close());

/** When the attempts of the only event ended, by the database's clock: the failed ones, and then the one that worked. */
async function attemptsOf({ parked, inbox }: JournalGroup): Promise<readonly number[]> {
  const failedAt = new Set<number>();
  const until = performance.now() + LIMIT_MS;
  while (performance.now() < until) {
    const waiting = await parked.findOne({ sequenced: true });
    if (waiting?.lastFailedAt instanceof Date) failedAt.add(waiting.lastFailedAt.getTime());
    const record = await inbox.findOne();
    if (record !== null) return [...failedAt, record.processedAt.getTime()];
    await delay(20);
  }
  throw new Error(`the event is not settled after ${LIMIT_MS} ms; it failed ${failedAt.size} times`);
}

describe('a handler that fails twice and then works', () => {
  it.for([
    ['is right', 0],
    ['is an hour ahead', HOUR_MS],
    ['is an hour behind', -HOUR_MS],
  ] as const)(
    'has its effect once, nothing is dead, and the delays are as configured though the clock of its worker %s',
    async ([, wrongByMs], context) => {
      const group = await openJournalGroup(world, { settings: { RETRY_DELAY_MS: String(RETRY_DELAY_MS) } });
      await group.startWorker({}, wrongClock(wrongByMs));
      await world.commit([{ aggregateId: 'a', orders: { failures: 2 } }]);
      const endedAt = await attemptsOf(group);
      const delays = endedAt.slice(1).map((at, index) => at - endedAt[index]!);
      expect(delays).toHaveLength(2);
      for (const delayMs of delays) expect(delayMs).toBeGreaterThanOrEqual(RETRY_DELAY_MS);
      const [entry] = await group.journal.find().toArray();
      expect(entry).toMatchObject({ attempt: 3 });
      // The clock of the worker really was wrong.
      expect(Math.abs(entry!.at.getTime() - endedAt[2]! - wrongByMs)).toBeLessThan(LIMIT_MS);
      const { effects } = await expectAllOnce(world, group);
      expect(effects).toBe(1);
      showFigures(context, { 'configured delay ms': RETRY_DELAY_MS, 'delays ms': delays.join(' and '), effects });
    },
  );
});

describe('a handler that fails because the database refuses a write and ends the transaction', () => {
  it('leaves a dead letter with its reason, holds no other aggregate, and applies once it is mended', async (context) => {
    const group = await openJournalGroup(world, { settings: { ATTEMPTS_MAX: '2' } });
    await group.startWorker();
    const [eventId] = await world.commit([
      { aggregateId: 'offender', orders: { offends: true } },
      { aggregateId: 'offender' },
      ...Array.from({ length: 8 }, (_, index) => ({ aggregateId: `a${index}` })),
    ]);
    await untilSettled(group, 8, LIMIT_MS);
    const { client, topic } = world;
    const catalogue = journalCatalogue(topic);
    const read = catalogue.read.bind(catalogue);
    const deadLetters = createDeadLetters({ client, database: group.database, group: group.group, read });
    await until('the event is dead', async () => (await deadLetters.list()).length === 1, LIMIT_MS);
    const [deadLetter] = await deadLetters.list();
    expect(deadLetter).toMatchObject({ eventId, attempts: 2, failure: { message: expect.stringContaining('E11000') } });
    const edit = { by: 'proof', reason: 'the data was wrong', data: { orders: {} } };
    expect(
      await deadLetters.editAndRetry({ eventId: deadLetter!.eventId, revision: deadLetter!.revision }, edit),
    ).toEqual({
      kind: 'done',
    });
    await untilSettled(group, 10, LIMIT_MS);
    showFigures(context, { ...(await expectAllOnce(world, group)) });
  });
});
