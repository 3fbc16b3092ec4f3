import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, statusOf, untilSettled } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { sized } from '../support/size.js';

const BEFORE = sized({ full: 2_000, small: 200 });
const AGGREGATES = sized({ full: 200, small: 40 });
const TRANSACTION_EVENTS = 20;
/** While the groups start, and for so long after they did. */
const EVERY_MS = 50;
const AFTER_MS = sized({ full: 30_000, small: 2_000 });

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

const aggregateId = (index: number): string => `a${index % AGGREGATES}`;

async function commitBefore(): Promise<void> {
  for (let first = 0; first < BEFORE; first += TRANSACTION_EVENTS) {
    await world.commit(Array.from({ length: TRANSACTION_EVENTS }, (_, n) => ({ aggregateId: aggregateId(first + n) })));
  }
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === BEFORE;
  await until('all that was before is published', isPublished, 120_000);
}

it('a group that starts from the beginning gets all, one that starts from now nothing of before, while new events keep coming', async (context) => {
  world = await openJournalWorld();
  await commitBefore();
  let isOver = false;
  let after = 0;
  const coming = (async () => {
    while (!isOver) {
      await world.commit([{ aggregateId: aggregateId(after) }]);
      after += 1;
      await delay(EVERY_MS);
    }
  })();
  const settings = { LEDGER_SWEEP_EVERY_MS: '1000', LEDGER_LAG_MS: '1000' };
  const [all, recent] = await Promise.all([
    openJournalGroup(world, { fromNowOn: false, settings }),
    openJournalGroup(world, { fromNowOn: false, settings: { ...settings, GROUP_FROM: 'now' } }),
  ]);
  const [worker] = await Promise.all([all.startWorker(), recent.startWorker()]);
  const ready = new Map<string, number>();
  const heads = await world.outbox.find().toArray();
  for (const row of heads) ready.set(row.aggregateId, Math.max(row.aggregateVersion, ready.get(row.aggregateId) ?? 0));
  await delay(AFTER_MS);
  isOver = true;
  await coming;
  const committed = BEFORE + after;
  await untilSettled(all, committed, 120_000);
  const places = await recent.positions.find().toArray();
  const beforeStart = places.reduce((sum, { startVersion }) => sum + startVersion, 0);
  await untilSettled(recent, committed - beforeStart, 120_000);
  const [verdict, verdictOfRecent] = [await expectAllOnce(world, all), await expectAllOnce(world, recent)];
  expect(verdict.effects).toBe(committed);
  expect(verdictOfRecent.effects).toBe(committed - beforeStart);
  // What was there before the group counts as before its start, and nothing that came once its worker was ready.
  expect(beforeStart).toBeGreaterThanOrEqual(BEFORE);
  for (const { aggregate, startVersion } of places) {
    const head = ready.get(aggregate.slice(aggregate.lastIndexOf('/') + 1)) ?? 0;
    const start = { aggregate, isAfterBefore: startVersion >= BEFORE / AGGREGATES, isAtMostHead: startVersion <= head };
    expect(start).toEqual({ aggregate, isAfterBefore: true, isAtMostHead: true });
  }
  const { ledgerMissing } = await statusOf(worker);
  showFigures(context, {
    'events before': BEFORE,
    'events meanwhile': after,
    'from the beginning': verdict.effects,
    'from now': verdictOfRecent.effects,
    'before the start of the latter': beforeStart,
    'brought by the ledger': Number(ledgerMissing),
    lost: verdict.lost + verdictOfRecent.lost,
    doubled: verdict.doubled + verdictOfRecent.doubled,
    misordered: verdict.misordered + verdictOfRecent.misordered,
  });
});
