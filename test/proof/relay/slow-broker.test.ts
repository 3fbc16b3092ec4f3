import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady, urlOf } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { loadOf, rssMaxOf } from '../support/process-figures.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { startSlowBroker } from '../support/slow-broker.js';
import { writeBacklog } from '../support/writers.js';

const BACKLOGS = sized({ full: [5_000, 50_000], small: [400, 3_200] });
const AGGREGATES = 300;
const TEXT_LENGTH = sized({ full: 3_000, small: 300 });
/** Of every answer; a send takes one round trip. */
const ANSWER_DELAY_MS = 300;
const WINDOW_MAX = 64;
const MEBIBYTE = 1024 * 1024;
const RSS_GROWTH_MAX = 1.5;
/** The relay's buffer, and one page more. */
const ROWS_IN_MEMORY_MAX = 1_024 + 500;
const SHUTDOWN_MS = 5_000;

interface Run {
  readonly rssMebibytes: number;
  readonly rowsInMemory: number;
  readonly sendsInFlight: number;
  readonly stopMs: number;
}

const cleanUp: (() => Promise<void>)[] = [];

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('A backlog before a slow broker takes memory that does not grow with it, and SIGTERM in the middle of it is obeyed in its deadline', async (context) => {
  const broker = await startSlowBroker(sharedStack().rocketmqEndpoints, { delayMs: ANSWER_DELAY_MS });
  cleanUp.push(() => broker.close());
  const runs: Run[] = [];
  for (const rows of BACKLOGS)
    runs.push(await sendHalf(await worldWithBacklog(rows), { endpoints: broker.endpoints, rows }));
  const [smaller, larger] = [runs[0]!, runs.at(-1)!];
  const all = (figure: keyof Run) => runs.map((run) => Math.round(run[figure])).join('/');
  showFigures(context, {
    rows: BACKLOGS.join('/'),
    answerDelayMs: ANSWER_DELAY_MS,
    rssMiB: all('rssMebibytes'),
    rowsInMemory: all('rowsInMemory'),
    sendsInFlight: all('sendsInFlight'),
    stopMs: all('stopMs'),
  });
  expect(larger.rssMebibytes / smaller.rssMebibytes).toBeLessThan(RSS_GROWTH_MAX);
  for (const { rowsInMemory, sendsInFlight, stopMs } of runs) {
    expect(rowsInMemory).toBeLessThanOrEqual(ROWS_IN_MEMORY_MAX);
    // It waits for answers, as many as it may.
    expect(sendsInFlight).toBeGreaterThan(WINDOW_MAX / 2);
    expect(sendsInFlight).toBeLessThanOrEqual(WINDOW_MAX);
    expect(stopMs).toBeLessThan(SHUTDOWN_MS + 1_000);
  }
});

async function worldWithBacklog(events: number): Promise<RelayWorld> {
  const world = await createRelayWorld({ servers: sharedStack() });
  cleanUp.push(() => world.close());
  const [topic = ''] = world.topics;
  await writeBacklog(world, { topic, events, aggregates: AGGREGATES, textLength: TEXT_LENGTH });
  return world;
}

/** Stops the slow relay in the middle; another one, whose broker is fast, ends its work. */
async function sendHalf(world: RelayWorld, { endpoints, rows }: { endpoints: string; rows: number }): Promise<Run> {
  const relay = world.startRelay({
    ROCKETMQ_ENDPOINTS: endpoints,
    ROCKETMQ_ALWAYS_USE_ENDPOINTS: 'true',
    WINDOW_MAX: String(WINDOW_MAX),
    SHUTDOWN_MS: String(SHUTDOWN_MS),
  });
  const url = await urlOf(relay);
  let [rowsInMemory, sendsInFlight] = [0, 0];
  const isHalfSent = async (): Promise<boolean> => {
    const load = await loadOf(url);
    rowsInMemory = Math.max(rowsInMemory, load.rowsInMemory);
    sendsInFlight = Math.max(sendsInFlight, load.sendsInFlight);
    return (await world.messageCount()) > rows / 2;
  };
  await until(`half of ${rows} are at the broker`, isHalfSent, 60_000 + 40 * rows);
  const rssMebibytes = rssMaxOf(relay) / MEBIBYTE;
  const askedMs = performance.now();
  relay.signal('SIGTERM');
  const { exit, stdout } = await relay.ended;
  const stopMs = performance.now() - askedMs;
  expect(exit, stdout).toBe(0);
  expect(await world.messageCount()).toBeLessThan(rows);
  await untilReady(world.startRelay());
  await world.untilPublished(rows, 60_000 + 20 * rows);
  expect((await world.judge()).violations).toEqual([]);
  return { rssMebibytes, rowsInMemory, sendsInFlight, stopMs };
}
