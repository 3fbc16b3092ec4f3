import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled, type JournalGroup } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { sized } from '../support/size.js';
import { percentile } from '../support/times.js';

const AGGREGATES = sized({ full: 100, small: 10 });
const VERSIONS = 5;
/** So many aggregates reach every queue before anything is measured: the first events of a group are slow. */
const WARMING = 40;
const MIDDLE = 3;
const GAP_WAIT_MS = 1_000;
/** The engine looks for gaps so often. */
const GAP_EVERY_MS = 2_000;
const SWEEP_EVERY_MS = 2_000;
const LAG_MS = 1_000;
/** For what is found to be taken in: a share of its own, and what the events that were not lost needed on this machine. */
const MARGIN_MS = 2_000;
const MARGIN_TIMES = 3;
/** For what has no time of its own to keep to. */
const LIMIT_MS = sized({ full: 600_000, small: 60_000 });
const NEVER_MS = 3_600_000;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

it('what the broker loses in the middle of an aggregate comes within the gap wait, and at its end within the period of the sweep', async (context) => {
  world = await openJournalWorld({
    carriageOf: ({ aggregateId, aggregateVersion }) =>
      aggregateVersion === (aggregateId.startsWith('middle') ? MIDDLE : VERSIONS) ? 'never' : 'once',
  });
  // One group has only the one means, the other only the other.
  const gaps = await openJournalGroup(world, {
    settings: { GAP_WAIT_MS: String(GAP_WAIT_MS), LEDGER_SWEEP_EVERY_MS: String(NEVER_MS) },
  });
  const sweep = await openJournalGroup(world, {
    settings: {
      GAP_WAIT_MS: String(NEVER_MS),
      LEDGER_SWEEP_EVERY_MS: String(SWEEP_EVERY_MS),
      LEDGER_LAG_MS: String(LAG_MS),
    },
  });
  await Promise.all([gaps.startWorker(), sweep.startWorker()]);
  await world.commit(Array.from({ length: WARMING }, (_, index) => ({ aggregateId: `warming${index}` })));
  await Promise.all([untilSettled(sweep, WARMING, LIMIT_MS), untilSettled(gaps, WARMING, LIMIT_MS)]);
  const names = Array.from({ length: AGGREGATES }, (_, index) => [`middle${index}`, `end${index}`]).flat();
  for (let version = 1; version <= VERSIONS; version += 1) {
    await world.commit(names.map((aggregateId) => ({ aggregateId })));
  }
  const committed = WARMING + names.length * VERSIONS;
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === committed;
  await until('all counts as published', isPublished, LIMIT_MS);
  await Promise.all([untilSettled(sweep, committed, LIMIT_MS), untilSettled(gaps, committed - AGGREGATES, LIMIT_MS)]);
  const verdict = await expectAllOnce(world, sweep);
  const inGaps = await waitsMs(gaps, MIDDLE, 'middle');
  const atEnd = await waitsMs(sweep, VERSIONS, 'end');
  const ordinary = [gaps, sweep].flatMap((group) => [
    ...[1, 2].map((version) => waitsMs(group, version, 'middle')),
    ...[1, 2, 3, 4].map((version) => waitsMs(group, version, 'end')),
  ]);
  const ordinaryMs = Math.max(...(await Promise.all(ordinary)).flat());
  const marginMs = MARGIN_MS + MARGIN_TIMES * ordinaryMs;
  // Without a successor nothing tells the gap search, so these wait for the sweep.
  expect(await gaps.inbox.countDocuments({ aggregate: /end/, version: VERSIONS })).toBe(0);
  showFigures(context, {
    committed,
    'never sent': world.publisher.carried.get('never') ?? 0,
    effects: verdict.effects,
    lost: verdict.lost,
    misordered: verdict.misordered,
    'never lost, longest s': ordinaryMs / 1_000,
    'repaired in the middle, p50 s': percentile(inGaps, 0.5) / 1_000,
    'repaired in the middle, longest s': Math.max(...inGaps) / 1_000,
    'repaired at the end, p50 s': percentile(atEnd, 0.5) / 1_000,
    'repaired at the end, longest s': Math.max(...atEnd) / 1_000,
  });
  expect(inGaps).toHaveLength(AGGREGATES);
  expect(atEnd).toHaveLength(AGGREGATES);
  expect(Math.max(...inGaps)).toBeLessThan(GAP_WAIT_MS + GAP_EVERY_MS + marginMs);
  expect(Math.max(...atEnd)).toBeLessThan(LAG_MS + SWEEP_EVERY_MS + marginMs);
});

/** From the mark as published to the effect, both by the database's clock. */
async function waitsMs({ inbox }: JournalGroup, version: number, prefix: string): Promise<readonly number[]> {
  const rows = await world.outbox.find({ aggregateId: new RegExp(`^${prefix}`) }).toArray();
  const publishedAt = new Map<string, Date>(rows.map((row) => [row._id, row.publishedAt!]));
  const records = (await inbox.find({ version }).toArray()).filter(({ eventId }) => publishedAt.has(eventId));
  return records.map(({ eventId, processedAt }) => processedAt.getTime() - publishedAt.get(eventId)!.getTime());
}
