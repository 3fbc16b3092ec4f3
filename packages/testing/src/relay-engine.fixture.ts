import { afterEach, beforeEach } from 'vitest';
import { createMemoryWorld, type MemoryWorld } from './memory/index.js';
import { startRelay, stopRelay, watchLandings, type RelaySetup, type RelayUnderTest } from './relay-engine.support.js';

/** Fresh for each test of the file that imports it. */
export let world: MemoryWorld;
/** Ids of what the broker has stored, in that order. */
export let landed: readonly string[];
/** Those started by `start`, in that order. */
export let relays: RelayUnderTest[];

beforeEach(() => {
  world = createMemoryWorld();
  landed = watchLandings(world);
  relays = [];
});

afterEach(async () => {
  for (const relay of relays) await stopRelay(world, relay);
});

/** Starts a relay that is stopped after the test. */
export function start(setup: RelaySetup = {}): RelayUnderTest {
  const relay = startRelay(world, setup);
  relays.push(relay);
  return relay;
}
