import { aggregateVersion } from '@nightporter/protocol';
import { checkHistory } from '@nightporter/testing';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled, type JournalGroup } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce, historyOf } from '../support/judge.js';
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

/** A group with one member, whose queues have all been used. */
async function openWarmGroup(settings: Readonly<Record<string, string>>): Promise<JournalGroup> {
  world = await openJournalWorld({
    carriageOf: ({ aggregateId, aggregateVersion }) =>
      aggregateVersion === (aggregateId.startsWith('middle') ? MIDDLE : VERSIONS) ? 'never' : 'once',
  });
  const group = await openJournalGroup(world, { settings });
  await group.startWorker();
  await world.commit(Array.from({ length: WARMING }, (_, index) => ({ aggregateId: `warming${index}` })));
  await untilSettled(group, WARMING, LIMIT_MS);
  return group;
}

/** Resolves to how many events are published, those of the warming among them. */
async function publishAll(names: readonly string[]): Promise<number> {
  for (let version = 1; version <= VERSIONS; version += 1) {
    await world.commit(names.map((aggregateId) => ({ aggregateId })));
  }
  const committed = WARMING + names.length * VERSIONS;
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === committed;
  await until('all counts as published', isPublished, LIMIT_MS);
  return committed;
}

it('what the broker loses in the middle of an aggregate comes within the gap wait', async (context) => {
  const group = await openWarmGroup({ GAP_WAIT_MS: String(GAP_WAIT_MS), LEDGER_SWEEP_EVERY_MS: String(NEVER_MS) });
  const ends = Math.ceil(AGGREGATES / 10);
  const committed = await publishAll([...namesOf('middle', AGGREGATES), ...namesOf('end', ends)]);
  await untilSettled(group, committed - ends, LIMIT_MS);
  // Without a successor nothing tells the gap search.
  expect(await group.inbox.countDocuments({ aggregate: /end/, version: VERSIONS })).toBe(0);
  expect(await group.journal.distinct('eventId')).toHaveLength(committed - ends);
  expect(await group.journal.countDocuments()).toBe(committed - ends);
  const violations = checkHistory(await historyOf(world, [group]));
  // The ends, and nothing doubled or out of order.
  expect(violations.map(({ kind }) => kind)).toEqual(Array(ends).fill('lost'));
  // A gap shows once its successor has come.
  const waits = await waitsMs(group, { prefix: 'middle', version: MIDDLE, since: MIDDLE + 1 });
  const ordinary = await Promise.all([
    waitsMs(group, { prefix: 'middle', version: 1 }),
    waitsMs(group, { prefix: 'middle', version: 2 }),
    ...[1, 2, 3, 4].map((version) => waitsMs(group, { prefix: 'end', version })),
  ]);
  const ordinaryMs = Math.max(...ordinary.flat());
  showFigures(context, {
    committed,
    'never sent': world.publisher.carried.get('never') ?? 0,
    'gap wait s': GAP_WAIT_MS / 1_000,
    'looked for every s': GAP_EVERY_MS / 1_000,
    'never lost, longest s': ordinaryMs / 1_000,
    'repaired, p50 s': percentile(waits, 0.5) / 1_000,
    'repaired, longest s': Math.max(...waits) / 1_000,
  });
  expect(waits).toHaveLength(AGGREGATES);
  expect(Math.max(...waits)).toBeLessThan(GAP_WAIT_MS + GAP_EVERY_MS + MARGIN_MS + MARGIN_TIMES * ordinaryMs);
});

it('what the broker loses at the end of an aggregate comes within the period of the sweep', async (context) => {
  const group = await openWarmGroup({
    GAP_WAIT_MS: String(NEVER_MS),
    LEDGER_SWEEP_EVERY_MS: String(SWEEP_EVERY_MS),
    LEDGER_LAG_MS: String(LAG_MS),
  });
  const committed = await publishAll(namesOf('end', AGGREGATES));
  await untilSettled(group, committed, LIMIT_MS);
  const verdict = await expectAllOnce(world, group);
  const waits = await waitsMs(group, { prefix: 'end', version: VERSIONS });
  const ordinary = await Promise.all([1, 2, 3, 4].map((version) => waitsMs(group, { prefix: 'end', version })));
  const ordinaryMs = Math.max(...ordinary.flat());
  showFigures(context, {
    committed,
    'never sent': world.publisher.carried.get('never') ?? 0,
    effects: verdict.effects,
    lost: verdict.lost,
    misordered: verdict.misordered,
    'swept every s': SWEEP_EVERY_MS / 1_000,
    'never lost, longest s': ordinaryMs / 1_000,
    'repaired, p50 s': percentile(waits, 0.5) / 1_000,
    'repaired, longest s': Math.max(...waits) / 1_000,
  });
  expect(waits).toHaveLength(AGGREGATES);
  expect(Math.max(...waits)).toBeLessThan(LAG_MS + SWEEP_EVERY_MS + MARGIN_MS + MARGIN_TIMES * ordinaryMs);
});

function namesOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

/** From the mark of `since` as published, by default its own, to the effect of `version`, both by the database's clock. */
async function waitsMs(
  { inbox }: JournalGroup,
  { prefix, version, since = version }: { prefix: string; version: number; since?: number },
): Promise<readonly number[]> {
  const rows = await world.outbox
    .find({ aggregateId: new RegExp(`^${prefix}`), aggregateVersion: aggregateVersion(since) })
    .toArray();
  const publishedAt = new Map<string, Date>(rows.map((row) => [row.aggregateId, row.publishedAt!]));
  const records = await inbox.find({ aggregate: new RegExp(`/${prefix}`), version }).toArray();
  return records.map(
    ({ aggregate, processedAt }) => processedAt.getTime() - publishedAt.get(aggregate.split('/').at(-1)!)!.getTime(),
  );
}
