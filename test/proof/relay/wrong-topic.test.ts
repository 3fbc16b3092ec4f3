import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack, uniqueName } from '../../support/stack.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { writeBacklog } from '../support/writers.js';

const EVENTS = sized({ full: 500, small: 150 });
const AGGREGATES = 50;

let world: RelayWorld;

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(() => world.close());

it('A topic of the wrong type waits whole and uncharged while the others flow, readiness names it, and mended it drains in order', async (context) => {
  const right = uniqueName('right');
  const wrong = uniqueName('wrong');
  world = await createRelayWorld({
    servers: sharedStack(),
    topics: [{ name: right }, { name: wrong, type: 'NORMAL' }],
  });
  const url = await untilReady(world.startRelay({ TOPICS: right }));
  await writeBacklog(world, { topic: wrong, events: EVENTS, aggregates: AGGREGATES, prefix: 'wrong' });
  await until('the topic is closed', async () => (await readiness(url)).includes(wrong), 30_000);

  const flowedFromMs = performance.now();
  await writeBacklog(world, { topic: right, events: EVENTS, aggregates: AGGREGATES, prefix: 'right' });
  await until('the other topic flows', async () => (await published(right)) === EVENTS);
  const flowedMs = performance.now() - flowedFromMs;
  const waiting = await world.rows.countDocuments({ topic: wrong, status: 'PENDING', retryCount: 0 });
  const told = await readiness(url);

  const mendedMs = performance.now();
  await world.servers.createTopic({ name: wrong, type: 'FIFO' });
  await until('the mended topic is drained', async () => (await published(wrong)) === EVENTS, 90_000);
  const drainedMs = performance.now() - mendedMs;
  await until('the relay is ready', async () => (await fetch(`${url}/readyz`)).ok, 30_000);
  const charged = await world.rows.countDocuments({ retryCount: { $gt: 0 } });
  const { violations, counts } = await world.judge();
  showFigures(context, {
    eventsOfEach: EVENTS,
    waitedUncharged: waiting,
    othersFlowedMs: Math.round(flowedMs),
    drainedMsAfterMending: Math.round(drainedMs),
    ...counts,
    charged,
  });
  expect(violations).toEqual([]);
  expect(waiting).toBe(EVENTS);
  expect(told).toContain(wrong);
  expect(charged).toBe(0);
});

const published = (topic: string): Promise<number> => world.rows.countDocuments({ topic, status: 'PUBLISHED' });

async function readiness(url: string): Promise<string> {
  return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(5_000) })).text();
}
