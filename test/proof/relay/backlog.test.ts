import { readFileSync } from 'node:fs';
import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady, urlOf, type Program } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { loadOf, rssMaxOf } from '../support/process-figures.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { writeBacklog } from '../support/writers.js';

const BACKLOGS = sized({ full: [5_000, 20_000, 50_000], small: [1_000, 2_000, 4_000] });
const AGGREGATES = 500;
/** So that rows, were they all kept, could not be overlooked. */
const TEXT_LENGTH = sized({ full: 3_000, small: 300 });
const MEBIBYTE = 1024 * 1024;
/** What a heap may grow by, since garbage is collected when V8 sees fit; the largest backlog of a full run would take a multiple. */
const RSS_GROWTH_MAX = 1.5;
/** The relay's buffer, and one page more. */
const ROWS_IN_MEMORY_MAX = 1_024 + 500;
/** Of the relay's processor time per row, from the smallest backlog to the largest: unlike the clock's, it is its own work alone. */
const RATIO_MAX = 2;
const SHUTDOWN_MS = 5_000;

interface Run {
  readonly rows: number;
  readonly rssMebibytes: number;
  readonly rowsInMemory: number;
  readonly msPerRow: number;
  readonly processorMsPerRow: number;
}

const worlds: RelayWorld[] = [];

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

it('A backlog of any length is drained in memory that does not grow with it, in time that grows no faster than it, and SIGTERM in the middle is obeyed in 5 s', async (context) => {
  const runs: Run[] = [];
  for (const rows of BACKLOGS) runs.push(await drain(await worldWithBacklog(rows), rows));
  const stopMs = await stopInTheMiddle(sized({ full: 20_000, small: 1_000 }));
  const [smallest, largest] = [runs[0]!, runs.at(-1)!];
  const ratio = largest.processorMsPerRow / smallest.processorMsPerRow;
  showFigures(context, {
    rows: runs.map(({ rows }) => rows).join('/'),
    rssMiB: runs.map(({ rssMebibytes }) => Math.round(rssMebibytes)).join('/'),
    rowsInMemory: runs.map(({ rowsInMemory }) => rowsInMemory).join('/'),
    msPerRow: runs.map(({ msPerRow }) => msPerRow.toFixed(2)).join('/'),
    processorMsPerRow: runs.map(({ processorMsPerRow }) => processorMsPerRow.toFixed(2)).join('/'),
    processorTimeRatio: ratio.toFixed(2),
    stopMs: Math.round(stopMs),
  });
  expect(largest.rssMebibytes / smallest.rssMebibytes).toBeLessThan(RSS_GROWTH_MAX);
  expect(Math.max(...runs.map(({ rowsInMemory }) => rowsInMemory))).toBeLessThanOrEqual(ROWS_IN_MEMORY_MAX);
  expect(ratio).toBeLessThan(RATIO_MAX);
  expect(stopMs).toBeLessThan(SHUTDOWN_MS + 1_000);
});

async function worldWithBacklog(events: number): Promise<RelayWorld> {
  const world = await createRelayWorld({ servers: sharedStack() });
  worlds.push(world);
  const [topic = ''] = world.topics;
  await writeBacklog(world, { topic, events, aggregates: AGGREGATES, textLength: TEXT_LENGTH });
  return world;
}

async function drain(world: RelayWorld, rows: number): Promise<Run> {
  const relay = world.startRelay();
  const url = await urlOf(relay);
  await until('the first rows are published', async () => (await world.messageCount()) > 0);
  const [first, sinceMs, processorSinceMs] = [await world.messageCount(), performance.now(), processorMsOf(relay)];
  let rowsInMemory = 0;
  const isAllSent = async (): Promise<boolean> => {
    rowsInMemory = Math.max(rowsInMemory, (await loadOf(url)).rowsInMemory);
    return (await world.messageCount()) >= rows;
  };
  await until(`${rows} are at the broker`, isAllSent, 30_000 + 20 * rows);
  const msPerRow = (performance.now() - sinceMs) / (rows - first);
  const processorMsPerRow = (processorMsOf(relay) - processorSinceMs) / (rows - first);
  await until('all are marked', async () => (await world.rows.countDocuments({ unsettled: true })) === 0);
  const rssMebibytes = rssMaxOf(relay) / MEBIBYTE;
  await relay.destroy();
  return { rows, rssMebibytes, rowsInMemory, msPerRow, processorMsPerRow };
}

async function stopInTheMiddle(rows: number): Promise<number> {
  const world = await worldWithBacklog(rows);
  const relay = world.startRelay({ SHUTDOWN_MS: String(SHUTDOWN_MS) });
  await until('a part is published', async () => (await world.messageCount()) > rows / 10);
  const askedMs = performance.now();
  relay.signal('SIGTERM');
  const { exit, stdout } = await relay.ended;
  const stopMs = performance.now() - askedMs;
  expect(exit, stdout).toBe(0);
  expect(await world.messageCount()).toBeLessThan(rows);
  await untilReady(world.startRelay());
  await world.untilPublished(rows, 30_000 + 20 * rows);
  expect((await world.judge()).violations).toEqual([]);
  return stopMs;
}

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;

/** The processor time that a process has had so far, as Linux keeps it: fields 14 and 15, behind a name that may hold anything. */
function processorMsOf(program: Program): number {
  const stat = readFileSync(`/proc/${program.processId}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  if (user === undefined || system === undefined)
    throw new Error('the system does not tell how long a process has worked');
  return (user + system) * TICK_MS;
}
