import { afterEach, beforeAll, expect, it } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { buildPrograms, until, untilReady } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { startOrdersLoad } from '../support/orders-load.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';
import { startOwnRocketMq } from '../support/servers.js';
import { sized } from '../support/size.js';

const OUTAGE_MS = sized({ full: 60_000, small: 10_000 });
/** What a busy machine makes of the database is not asked here. */
const COMMAND_MS = '25000';
const ORDERS_PER_SECOND = sized({ full: 40, small: 15 });

const cleanUp: (() => Promise<void>)[] = [];

beforeAll(() => {
  buildPrograms('services/orders-api', 'services/relay');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('While the broker is down every order is taken, and afterwards all of it is published in order, with nothing given up', async (context) => {
  const { rocketmq, servers } = await startOwnRocketMq();
  cleanUp.push(() => rocketmq.stop());
  const world = await createRelayWorld({ servers, topics: [{ name: 'orders-events' }] });
  cleanUp.push(() => world.close());
  const relay = world.startRelay();
  const api = world.startService('orders-api', { MONGODB_DB: world.database, COMMAND_MS });
  const [apiUrl = ''] = await Promise.all([api, relay].map(untilReady));

  const load = startOrdersLoad(apiUrl, { ordersPerSecond: ORDERS_PER_SECOND });
  await until('events are published', async () => (await world.messageCount()) > 10);
  await rocketmq.kill();
  const givenUp = await givenUpWithin(world, OUTAGE_MS);
  const waiting = await world.rows.countDocuments({ unsettled: true });
  const restartedMs = performance.now();
  await rocketmq.restart();
  const before = await world.messageCount();
  await until('the first event is published', async () => (await world.messageCount()) > before, 30_000);
  const firstAfterMs = performance.now() - restartedMs;
  const { orders, statuses, msMax } = await load.stop();
  await world.untilPublished(2 * orders, 120_000);
  const drainedMs = performance.now() - restartedMs;

  const { violations, counts } = await world.judge();
  const charged = await world.rows.countDocuments({ retryCount: { $gt: 0 } });
  showFigures(context, {
    downSeconds: OUTAGE_MS / 1_000,
    ordersTaken: statuses.get(201) ?? 0,
    answersOtherThan2xx: [...statuses].filter(([status]) => status >= 300).reduce((sum, [, count]) => sum + count, 0),
    answerMsMax: Math.round(msMax),
    waitingAtRestart: waiting,
    firstAfterMs: Math.round(firstAfterMs),
    drainedMs: Math.round(drainedMs),
    ...counts,
    failedOrDead: givenUp,
    charged,
  });
  expect(violations).toEqual([]);
  expect([...statuses.keys()].every((status) => status < 300)).toBe(true);
  expect(statuses.get(201)).toBe(orders);
  expect(waiting).toBeGreaterThan(0);
  expect([givenUp, charged]).toEqual([0, 0]);
  expect(relay.isRunning).toBe(true);
});

/** Looks all the time; the most rows that were FAILED or DEAD at once. */
async function givenUpWithin(world: RelayWorld, durationMs: number): Promise<number> {
  const end = performance.now() + durationMs;
  let most = 0;
  while (performance.now() < end) {
    most = Math.max(most, await world.rows.countDocuments({ status: { $in: ['FAILED', 'DEAD'] } }));
    await delay(500);
  }
  return most;
}
