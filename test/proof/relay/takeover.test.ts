import { afterEach, beforeAll, expect, it } from 'vitest';
import { buildPrograms, until, untilReady, type Program } from '../../e2e/programs.js';
import { showFigures } from '../../support/figures.js';
import { sharedStack } from '../../support/stack.js';
import { watchCheckpoint, type CheckpointWatch } from '../support/checkpoint-watch.js';
import { createRelayWorld, type RelayWorld } from '../support/relay-world.js';
import { sized } from '../support/size.js';
import { createWriter } from '../support/writers.js';

const EVENTS = sized({ full: 5_000, small: 600 });
const AGGREGATES = sized({ full: 300, small: 60 });
/** Each one kill and one pause. */
const ROUNDS = sized({ full: 10, small: 2 });
const LIMIT_MS = 60_000;
/** So slow that every fault meets a relay at work. */
const SETTINGS = {
  LEASE_MS: '3000',
  SEND_TIMEOUT_MS: '1000',
  SENDS_PER_SECOND_MAX: String(sized({ full: 250, small: 120 })),
  WINDOW_MAX: '32',
};

let world: RelayWorld;
const cleanUp: (() => Promise<unknown>)[] = [];

beforeAll(() => {
  buildPrograms('services/relay');
});
afterEach(async () => {
  for (const close of cleanUp.splice(0).reverse()) await close();
});

it('Two relays publish everything, in order, while one is killed, and paused past its lease and resumed, again and again', async (context) => {
  world = await createRelayWorld({ servers: sharedStack() });
  cleanUp.push(() => world.close());
  const checkpoint = await watchCheckpoint(world);
  cleanUp.push(() => checkpoint.stop());
  await Promise.all([world.startRelay(SETTINGS), world.startRelay(SETTINGS)].map(untilReady));
  const writer = createWriter(world, { aggregates: AGGREGATES });
  const waits: number[] = [];
  let fencedSaves = 0;
  for (let fault = 0; fault < 2 * ROUNDS; fault += 1) {
    const writing = writer.write(Math.floor(EVENTS / (2 * ROUNDS)));
    const { relay, epoch } = await leaderAtWork();
    const since = performance.now();
    await (fault % 2 === 0 ? kill(relay) : pausePast(relay, epoch));
    await until('the other has taken over', async () => ((await world.leader())?.epoch ?? 0) > epoch, LIMIT_MS);
    waits.push(performance.now() - since);
    fencedSaves += await countFenced(checkpoint, epoch);
    await writing;
  }
  await world.untilPublished(EVENTS, 2 * LIMIT_MS);
  const lastEpoch = (await world.leader())?.epoch ?? 0;
  const { violations, counts } = await world.judge();
  const { changes, regressions } = await checkpoint.stop();
  showFigures(context, {
    events: EVENTS,
    aggregates: AGGREGATES,
    kills: ROUNDS,
    pauses: ROUNDS,
    takeOvers: lastEpoch - 1,
    takeOverMsMax: Math.round(Math.max(...waits)),
    ...counts,
    checkpointChanges: changes,
    regressions: regressions.length,
    fencedSaves,
  });
  expect(violations).toEqual([]);
  expect(regressions).toEqual([]);
  expect(writer.failures).toEqual([]);
  expect(counts.published).toBe(EVENTS);
  expect(fencedSaves).toBe(2 * ROUNDS);
  expect(lastEpoch).toBeGreaterThan(2 * ROUNDS);
});

/** The leader, in the middle of what has been written since the last fault. */
async function leaderAtWork(): Promise<{ relay: Program; epoch: number }> {
  const before = await world.messageCount();
  await until('the leader publishes', async () => (await world.messageCount()) >= before + 10, LIMIT_MS);
  const leader = await world.leader();
  if (leader === null) throw new Error('nobody holds the lease, and yet events are published');
  return leader;
}

async function kill(relay: Program): Promise<void> {
  relay.signal('SIGKILL');
  await relay.ended;
  world.startRelay(SETTINGS);
}

async function pausePast(relay: Program, epoch: number): Promise<void> {
  relay.signal('SIGSTOP');
  try {
    await until('the pause has cost the lease', async () => ((await world.leader())?.epoch ?? 0) > epoch, LIMIT_MS);
  } finally {
    relay.signal('SIGCONT');
  }
}

async function countFenced(checkpoint: CheckpointWatch, staleEpoch: number): Promise<number> {
  return (await checkpoint.isFenced(staleEpoch)) ? 1 : 0;
}
