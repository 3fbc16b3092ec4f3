import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady, urlOf, type Program } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { createWriter } from '../support/writers.js';

const EVENTS = sized({ full: 5_000, small: 500 });
const AGGREGATES = sized({ full: 300, small: 60 });
/** Each one join, stop or kill. */
const CHANGES = 4;
const SHARDS = 8;
const LIMIT_MS = 60_000;
/** So slow that every change meets relays at work. */
const SETTINGS = {
  SHARDS: String(SHARDS),
  LEASE_MS: '4000',
  SEND_TIMEOUT_MS: '1000',
  SENDS_PER_SECOND_MAX: String(sized({ full: 100, small: 40 })),
  WINDOW_MAX: '32',
};

const cleanUp: (() => Promise<unknown>)[] = [];

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('Three relays share out the shards fairly and publish everything in order, while one joins, one is stopped and one is killed', async (context) => {
  const world = await createRelayWorld({ servers: sharedStack() });
  cleanUp.push(() => world.close());
  const [first, second] = [world.startRelay(SETTINGS), world.startRelay(SETTINGS)];
  await untilFair(world, [first, second]);
  const writer = createWriter(world, { aggregates: AGGREGATES });
  const waits: number[] = [];
  /** Changes who is there while events are written and published, and waits until the others have their parts. */
  const change = async (happen: () => Promise<readonly Program[]>): Promise<void> => {
    const before = await world.messageCount();
    const writing = writer.write(EVENTS / CHANGES);
    await until('events are published', async () => (await world.messageCount()) >= before + 5, LIMIT_MS);
    const relays = await happen();
    const since = performance.now();
    await untilFair(world, relays);
    waits.push(performance.now() - since);
    await writing;
  };

  const third = world.startRelay(SETTINGS);
  await change(() => Promise.resolve([first, second, third]));
  await change(async () => {
    first.signal('SIGTERM');
    expect((await first.ended).exit).toBe(0);
    return [second, third];
  });
  const fourth = world.startRelay(SETTINGS);
  await change(() => Promise.resolve([second, third, fourth]));
  await change(async () => {
    second.signal('SIGKILL');
    await second.ended;
    return [third, fourth];
  });
  await world.untilPublished(EVENTS, 2 * LIMIT_MS);
  await untilReady(third);

  const { violations, counts } = await world.judge();
  const [joinMs = 0, stopMs = 0, rejoinMs = 0, killMs = 0] = waits.map(Math.round);
  showFigures(context, { events: EVENTS, shards: SHARDS, joinMs, stopMs, rejoinMs, killMs, ...counts });
  expect(violations).toEqual([]);
  expect(writer.failures).toEqual([]);
  expect(counts.published).toBe(EVENTS);
});

it('A relay with another number of shards waits, not ready, until the others have gone, and then takes all of its own', async () => {
  const world = await createRelayWorld({ servers: sharedStack() });
  cleanUp.push(() => world.close());
  const one = world.startRelay({ ...SETTINGS, SHARDS: '1' });
  await untilReady(one);
  const waiting = world.startRelay(SETTINGS);
  await waiting.output(/another division of the slots is served/, LIMIT_MS);
  const answer = await fetch(`${await urlOf(waiting)}/readyz`);
  expect(answer.status).toBe(503);
  expect(await answer.text()).toMatch(/waits while another division of the slots is served: shard all is held by/);
  expect(await world.shares([one, waiting])).toEqual([['all'], []]);
  one.signal('SIGTERM');
  await until('all shards are taken', async () => (await world.shares([waiting]))[0]?.length === SHARDS, LIMIT_MS);
  await untilReady(waiting);
  const writer = createWriter(world, { aggregates: AGGREGATES });
  await writer.write(60);
  await world.untilPublished(60, LIMIT_MS);
  expect((await world.judge()).violations).toEqual([]);
});

/** Every shard is held, and none of these holds two more than another. */
async function untilFair(world: RelayWorld, relays: readonly Program[]): Promise<void> {
  await until(
    `${relays.length} relays hold their parts`,
    async () => {
      const counts = (await world.shares(relays)).map((shards) => shards.length);
      const held = counts.reduce((sum, count) => sum + count, 0);
      return held === SHARDS && Math.max(...counts) - Math.min(...counts) <= 1;
    },
    LIMIT_MS,
  );
}
