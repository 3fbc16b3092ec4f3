import type { StartedRecords } from '@nightporter/consumer';
import { describe, expect, test } from 'vitest';
import { commits, failingFor, history, position, start, startDraining, world } from './consumer-engine.fixture.js';
import { mortalPorts, send, settled, startMember, startedRecords, type Mortal } from './consumer-engine.support.js';

const COUNT = 20;
const effectsOf = (last: number): readonly string[] => history('a', last).map(({ version }) => `a-${version}`);

describe('what waits behind an event', () => {
  test('runs with the first that has its turn, in one transaction', async () => {
    const poison = new Set(['a-1']);
    const member = startDraining(poison);
    send(world, ...history('a', COUNT));
    await settled(world);
    poison.clear();
    const counts = commits();
    await world.clock.advance(2_000);
    // The first was tried before, and runs alone.
    expect(counts).toEqual([1, COUNT - 1]);
    expect(member.effects()).toEqual(effectsOf(COUNT));
    expect(member.parked()).toEqual([]);
    expect(position('a')).toMatchObject({ version: COUNT, state: 'open' });
    expect(member.inbox().map(({ attempts }) => attempts)).toEqual([2, ...Array<number>(COUNT - 1).fill(1)]);
  });

  test('runs so many at once as one transaction may settle', async () => {
    const poison = new Set(['a-1']);
    const member = startDraining(poison, { commitMax: 8 });
    send(world, ...history('a', COUNT));
    await settled(world);
    poison.clear();
    const counts = commits();
    await world.clock.advance(2_000);
    expect(counts).toEqual([1, 8, 8, 3]);
    expect(member.effects()).toEqual(effectsOf(COUNT));
  });

  test('runs one by one where nobody keeps record of what was started', async () => {
    const poison = new Set(['a-1']);
    const member = start({ handlers: failingFor(poison), options: { retryScheduleMs: [1_000] } });
    send(world, ...history('a', COUNT));
    await settled(world);
    poison.clear();
    const counts = commits();
    await world.clock.advance(2_000);
    expect(counts).toEqual(Array<number>(COUNT).fill(1));
    expect(member.effects()).toEqual(effectsOf(COUNT));
  });

  test('commits up to the one that fails, which has all of its attempts, and the rest waits for it', async () => {
    const poison = new Set(['a-1', 'a-5']);
    const runs: string[] = [];
    const member = startDraining(poison, { runs });
    send(world, ...history('a', 9));
    await settled(world);
    poison.delete('a-1');
    runs.length = 0;
    const counts = commits();
    await world.clock.advance(1_500);
    expect(counts).toEqual([1, 3]);
    expect(member.effects()).toEqual(effectsOf(4));
    expect(member.parked()).toMatchObject([
      { state: 'retry', attempts: 1, failure: { message: 'poison a-5' } },
      ...Array<object>(4).fill({ state: 'behind', attempts: 0 }),
    ]);
    poison.clear();
    await world.clock.advance(1_500);
    expect(member.effects()).toEqual(effectsOf(9));
    expect(member.inbox().map(({ attempts }) => attempts)).toEqual([2, 1, 1, 1, 2, 1, 1, 1, 1]);
  });

  test('ends before what can only become a dead letter, and what stands behind that is not touched', async () => {
    const poison = new Set(['a-1']);
    const member = startDraining(poison);
    const events = history('a', 6).map((event) => (event.version === 4 ? { ...event, digest: 'altered' } : event));
    send(world, ...events);
    await settled(world);
    poison.clear();
    const counts = commits();
    await world.clock.advance(2_000);
    expect(counts).toEqual([1, 2]);
    expect(member.effects()).toEqual(effectsOf(3));
    expect(member.parked()).toMatchObject([
      { state: 'dead', failure: { code: 'NP_DIGEST_MISMATCH' } },
      { state: 'behind', attempts: 0, revision: 1 },
      { state: 'behind', attempts: 0, revision: 1 },
    ]);
  });

  test('ends before what is on record of another process, which then runs alone', async () => {
    const poison = new Set(['a-1']);
    const member = startDraining(poison, {
      started: { begin: ({ events }) => Promise.resolve(events.filter((id) => id === 'a-5')) },
    });
    send(world, ...history('a', 9));
    await settled(world);
    poison.clear();
    const counts = commits();
    await world.clock.advance(2_000);
    expect(counts).toEqual([1, 3, 1, 4]);
    expect(member.effects()).toEqual(effectsOf(9));
  });

  test('is left out where it was changed meanwhile', async () => {
    const poison = new Set(['a-1']);
    const started = startedRecords();
    const { store } = world.groupStores('billing');
    const member = startDraining(poison, {
      started: changing(started, () => {
        // As an operator who sets an event aside and brings it again.
        const [, row] = member.parked();
        const { aggregate } = row!.event;
        return store.transact((transaction) =>
          transaction.save([
            { kind: 'park', event: row!.event, state: 'behind', attempts: 0, retryInMs: null, failure: null },
            { kind: 'position', aggregate, position: { version: 1, startVersion: 0, state: 'blocked' } },
          ]),
        );
      }),
    });
    send(world, ...history('a', 4));
    await settled(world);
    poison.clear();
    const counts = commits();
    await world.clock.advance(2_000);
    expect(member.effects()).toEqual(effectsOf(4));
    expect(counts).toEqual([1, 1, 2]);
  });

  test('is not dragged along by the one among it that ends the process', async () => {
    const started = startedRecords();
    send(world, ...history('a', 9), ...history('b', 1));
    let fails = true;
    let deaths = 0;
    for (let process = 0; process < 6; process += 1) {
      const mortal: Mortal = { isDead: false };
      startMember(world, {
        options: {
          attemptsMax: 2,
          claimMs: 41_000,
          handlerMs: 10_000,
          retryScheduleMs: [1_000],
          deliveriesTrusted: 100,
        },
        ports: (ports) => ({ ...mortalPorts(ports, mortal), started }),
        handlers: {
          OrderPaid: async ({ event, session }) => {
            if (event.eventId === 'a-1' && fails) {
              fails = false;
              throw new Error('not yet');
            }
            if (event.eventId === 'a-5') {
              mortal.isDead = true;
              deaths += 1;
            }
            // What a dead process had in hand comes to nothing.
            if (mortal.isDead) await new Promise(() => undefined);
            await session.effect(event.eventId);
          },
        },
      });
      await world.clock.advance(45_000);
      mortal.isDead = true;
    }
    expect(world.group('billing').effects.filter((id) => id !== 'b-1')).toEqual(effectsOf(4));
    expect(world.group('billing').parked()).toMatchObject([
      { state: 'dead', attempts: 2, event: { envelope: { eventId: 'a-5' } } },
      ...Array<object>(4).fill({ state: 'behind', attempts: 0 }),
    ]);
    // The first died of it with the others, the next two of it alone.
    expect(deaths).toBe(3);
  });
});

/** Records that have something happen right before the first batch of several is on record. */
function changing(started: StartedRecords, change: () => Promise<unknown>): StartedRecords {
  let isDone = false;
  return {
    begin: async (batch) => {
      if (batch.events.length === 3 && !isDone) {
        isDone = true;
        await change();
      }
      return started.begin(batch);
    },
  };
}
