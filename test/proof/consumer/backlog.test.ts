import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { JOURNAL_PROGRAMS, openJournalGroup, untilSettled } from '../support/journal-group.js';
import { openJournalWorld, type JournalWorld } from '../support/journal-world.js';
import { expectAllOnce } from '../support/judge.js';
import { rssMaxOf } from '../support/process-figures.js';
import { sized } from '../support/size.js';
import { secondsSince } from '../support/times.js';

const EVENTS = sized({ full: 50_000, small: 1_000 });
const AGGREGATES = 500;
const TRANSACTION_EVENTS = 100;
const LIMIT_MS = sized({ full: 2_400_000, small: 180_000 });
const MEBIBYTES_MAX = 300;
const MEBIBYTE = 1024 * 1024;
const STOP_MS = 5_000;
/** Beside the time for stopping: for the signal and the process on a busy machine. */
const MARGIN_MS = 1_000;

let world: JournalWorld;

beforeAll(() => {
  buildPrograms(JOURNAL_PROGRAMS);
});
afterEach(() => world.close());

it('a worker with a backlog stays within its memory, and ends within 5 s of SIGTERM in the middle of it', async (context) => {
  world = await openJournalWorld();
  const group = await openJournalGroup(world);
  for (let first = 0; first < EVENTS; first += TRANSACTION_EVENTS) {
    const ids = Array.from({ length: TRANSACTION_EVENTS }, (_, n) => `a${(first + n) % AGGREGATES}`);
    await world.commit(ids.map((aggregateId) => ({ aggregateId })));
  }
  const isPublished = async () => (await world.outbox.countDocuments({ status: 'PUBLISHED' })) === EVENTS;
  await until('the backlog is at the broker', isPublished, LIMIT_MS);
  const stopped = await group.startWorker({ SHUTDOWN_MS: String(STOP_MS) });
  await untilSettled(group, EVENTS / 4, LIMIT_MS);
  const asked = performance.now();
  stopped.signal('SIGTERM');
  const { exit, stdout } = await stopped.ended;
  const stopMs = Math.round(performance.now() - asked);
  expect(exit, stdout.slice(-2_000)).toBe(0);
  const left = EVENTS - (await group.inbox.countDocuments());
  const started = performance.now();
  const worker = await group.startWorker();
  await untilSettled(group, EVENTS, LIMIT_MS);
  const seconds = secondsSince(started);
  const mebibytes = Math.round(rssMaxOf(worker) / MEBIBYTE);
  const verdict = await expectAllOnce(world, group);
  showFigures(context, {
    ...verdict,
    'left at SIGTERM': left,
    'ms from SIGTERM to the exit': stopMs,
    's for what was left': seconds,
    'most MiB of the process': mebibytes,
  });
  expect(left).toBeGreaterThan(0);
  expect(stopMs).toBeLessThan(STOP_MS + MARGIN_MS);
  expect(mebibytes).toBeLessThan(MEBIBYTES_MAX);
});
