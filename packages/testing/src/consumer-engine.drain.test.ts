import type { StartedRecords } from '@nightporter/consumer';
import { NightporterError, sleep } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { failingFor, history, position, start, world } from './consumer-engine.fixture.js';
import {
  mortalPorts,
  send,
  settled,
  startMember,
  startedRecords,
  stopMember,
  type Mortal,
} from './consumer-engine.support.js';

const COUNT = 20;
const effectsOf = (last: number): readonly string[] => history('a', last).map(({ version }) => `a-${version}`);

/** How many events each transaction of the group has settled, without those that settled none. */
function commits(): number[] {
  const counts: number[] = [];
  const group = world.group('billing');
  const told = group.onCommitted;
  group.onCommitted = (commit) => {
    told(commit);
    if (commit.settled.length > 0) counts.push(commit.settled.length);
  };
  return counts;
}

function startDraining(
  poison: Set<string>,
  { started = startedRecords(), runs = [] as string[], commitMax = 32 } = {},
) {
  return start({
    handlers: failingFor(poison, runs),
    options: { retryScheduleMs: [1_000], commitMax },
    ports: () => ({ started }),
  });
}

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
          claimMs: 40_000,
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

describe('however long it takes, something has an outcome', () => {
  const options = { retryScheduleMs: [1_000], handlerMs: 6_000, transactionMs: 2_000, claimMs: 15_000 };

  test('when an event hangs behind a healthy one: the healthy one commits, and the other is charged and dies', async () => {
    const isFirst = new Set<string>();
    const member = start({
      handlers: {
        OrderPaid: async ({ attempt, event, session }) => {
          if (event.eventId === 'a-1' && attempt === 1) throw new Error('not yet');
          isFirst.add(event.eventId);
          if (event.eventId === 'a-3') await new Promise(() => undefined);
          await session.effect(event.eventId);
        },
      },
      options: { ...options, attemptsMax: 2 },
      ports: () => ({ started: startedRecords() }),
    });
    send(world, ...history('a', 4), ...history('b', 2));
    await world.clock.advance(40_000);
    expect(member.effects().filter((id) => id.startsWith('a'))).toEqual(['a-1', 'a-2']);
    expect(member.parked()).toMatchObject([
      { state: 'dead', attempts: 2, event: { envelope: { eventId: 'a-3' } } },
      { state: 'behind', attempts: 0 },
    ]);
  });

  test('when one among slow ones meets conflicts for ever: the others commit, and it waits for its turn alone', async () => {
    const names = ['n0', 'n1', 'n2', 'n3', 'n4'];
    const hot = 'n0-1';
    let isReady = false;
    const member = start({
      handlers: {
        OrderPaid: async ({ event, session }) => {
          if (!isReady) throw new Error('not yet');
          await sleep(world.clock, 800);
          if (event.eventId === hot) throw new NightporterError('NP_TRANSACTION_CONFLICT', 'hot');
          await session.effect(event.eventId);
        },
      },
      options: { ...options, retryConcurrency: 1, hardshipsMax: 4 },
      ports: () => ({ started: startedRecords() }),
    });
    // Each waits behind a first event that does not work yet, so that all have their turn at once, and untried.
    send(world, ...names.flatMap((name) => history(name, 1)));
    await settled(world);
    await world.groupStores('billing').store.transact(async (transaction) => {
      const events = member.parked().map(({ event }) => event);
      await transaction.load(events);
      const parked = { state: 'retry', attempts: 0, retryInMs: 0, failure: null } as const;
      await transaction.save(events.map((event) => ({ kind: 'park', event, ...parked })));
    });
    isReady = true;
    await world.clock.advance(60_000);
    expect(member.effects().toSorted()).toEqual(names.map((name) => `${name}-1`).filter((id) => id !== hot));
    expect(member.parked()).toMatchObject([{ state: 'retry', isSuspect: true }]);
  });

  test('when one on record of another process comes late in its batch: it has a slot of its own the next time', async () => {
    const names = ['x', 'y0', 'y1', 'y2'];
    const given: (boolean | undefined)[] = [];
    let isReady = false;
    let isFirst = true;
    const member = start({
      handlers: {
        OrderPaid: async ({ event, session }) => {
          if (!isReady) throw new Error('not yet');
          await sleep(world.clock, 800);
          await session.effect(event.eventId);
        },
      },
      options: { ...options, retryConcurrency: 1 },
      ports: ({ parked }) => ({
        started: {
          begin: ({ events }) => {
            const elsewhere = isReady && isFirst ? events.filter((id) => id === 'x-1') : [];
            isFirst = !isReady;
            return Promise.resolve(elsewhere);
          },
        },
        parked: {
          ...parked,
          giveBack: (claims) => {
            given.push(...claims.map(({ isSuspect }) => isSuspect));
            return parked.giveBack(claims);
          },
        },
      }),
    });
    send(world, ...names.flatMap((name) => history(name, 1)));
    await settled(world);
    await world.groupStores('billing').store.transact(async (transaction) => {
      const events = member.parked().map(({ event }) => event);
      await transaction.load(events);
      const parked = { state: 'retry', attempts: 0, retryInMs: 0, failure: null } as const;
      await transaction.save(events.map((event) => ({ kind: 'park', event, ...parked })));
    });
    isReady = true;
    await world.clock.advance(20_000);
    expect(given).toEqual([true]);
    expect(member.effects().toSorted()).toEqual(names.map((name) => `${name}-1`).toSorted());
  });
});

describe('events that have their turn at once', () => {
  const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
  const ids = names.map((name) => `${name}-1`);

  /** Parks the first version of each as due, as the ledger does. */
  async function parkAll(last = 1): Promise<void> {
    const parking = start({ handlers: failingFor(new Set(ids)), options: { retryScheduleMs: [3_600_000] } });
    send(world, ...names.flatMap((name) => history(name, last)));
    await settled(world);
    await stopMember(world, parking);
    await world.groupStores('billing').store.transact(async (transaction) => {
      const events = parking.parked().map(({ event }) => event);
      await transaction.load(events);
      const first = events.filter(({ envelope }) => envelope.aggregateVersion === 1);
      const parked = { state: 'retry', attempts: 0, retryInMs: 0, failure: null } as const;
      await transaction.save(first.map((event) => ({ kind: 'park', event, ...parked })));
    });
  }

  test('share transactions, as many as there are slots, each with what waits behind it', async () => {
    await parkAll(2);
    const member = startDraining(new Set());
    const counts = commits();
    await world.clock.advance(1_000);
    expect(counts).toEqual([6, 6, 6, 6]);
    expect(member.effects().toSorted()).toEqual(names.flatMap((name) => [`${name}-1`, `${name}-2`]).toSorted());
  });

  test('do not share one where a death of another would cost them their only attempt', async () => {
    await parkAll();
    start({ options: { attemptsMax: 1 }, ports: () => ({ started: startedRecords() }) });
    const counts = commits();
    await world.clock.advance(1_000);
    expect(counts).toEqual(Array<number>(12).fill(1));
  });

  test('do not share one where a claim may run out while others run', async () => {
    await parkAll();
    const limits = { handlerMs: 10_000, transactionMs: 5_000, claimMs: 25_000 };
    start({ options: limits, ports: () => ({ started: startedRecords() }) });
    const counts = commits();
    await world.clock.advance(1_000);
    expect(counts).toEqual(Array<number>(12).fill(1));
  });

  test('do not share one with what once ended its process, though an operator retries it', async () => {
    await parkAll();
    const killer = world.group('billing').parked()[3]!.event;
    await world.groupStores('billing').store.transact(async (transaction) => {
      await transaction.load([killer]);
      const spent = { attempts: 9, retryInMs: 0, failure: null };
      await transaction.save([{ kind: 'park', event: killer, state: 'retry', ...spent }]);
    });
    const member = startDraining(new Set());
    await world.clock.advance(1_000);
    expect(member.parked()).toMatchObject([{ state: 'dead', isSuspect: true }]);
    const { aggregate, envelope } = killer;
    world.group('billing').retryDead(aggregate, envelope.aggregateVersion);
    const claims = await world.groupStores('billing').parked.claimDue({
      ...{ limit: 4, repeatedLimit: 0, togetherMax: 8, claimMs: 1_000, isAlone: true },
    });
    expect(claims).toEqual([]);
  });

  test('do not share one where one of them may have ended a process', async () => {
    let isFirst = true;
    const member = startDraining(new Set(), {
      started: {
        begin: ({ events }) => {
          const elsewhere = isFirst ? events : [];
          isFirst = false;
          return Promise.resolve(elsewhere);
        },
      },
    });
    const counts = commits();
    send(world, ...names.map((aggregateId) => ({ aggregateId, version: 1 })));
    await world.clock.advance(1_000);
    expect(counts).toEqual(Array<number>(12).fill(1));
    expect(member.effects().toSorted()).toEqual(ids.toSorted());
  });

  test('commit without the one among them that fails, which is charged alone', async () => {
    await parkAll();
    const runs: string[] = [];
    const member = start({
      handlers: failingFor(new Set(['n4-1']), runs),
      options: { retryScheduleMs: [1_000], retryConcurrency: 1 },
      ports: () => ({ started: startedRecords() }),
    });
    await world.clock.advance(900);
    expect(member.effects().toSorted()).toEqual(ids.filter((id) => id !== 'n4-1').toSorted());
    expect(member.parked()).toMatchObject([{ state: 'retry', attempts: 1, failure: { message: 'poison n4-1' } }]);
    expect(member.inbox().every(({ attempts }) => attempts === 1)).toBe(true);
    // Those before it once more, itself once more to see whether it fails alone, none behind it.
    expect(runs.filter((id) => id === 'n4-1')).toHaveLength(2);
    expect(runs).toHaveLength(12 + 4 + 1);
  });

  test('go back uncounted when they would have to wait long in the hands of one process', async () => {
    await parkAll();
    const attempts: number[] = [];
    const givenBack: number[] = [];
    const member = start({
      handlers: {
        OrderPaid: async ({ attempt, event, session }) => {
          attempts.push(attempt);
          await sleep(world.clock, 700);
          await session.effect(event.eventId);
        },
      },
      options: { retryConcurrency: 1, transactionMs: 2_000 },
      ports: ({ parked }) => ({
        started: startedRecords(),
        parked: {
          ...parked,
          giveBack: (claims) => {
            givenBack.push(claims.length);
            return parked.giveBack(claims);
          },
        },
      }),
    });
    const counts = commits();
    await world.clock.advance(12_000);
    expect(counts).toEqual([3, 3, 3, 3]);
    expect(givenBack).toEqual([9, 6, 3]);
    expect(attempts).toEqual(Array<number>(12).fill(1));
    expect(member.parked()).toEqual([]);
  });

  test('are all given back when the member stops before they ran', async () => {
    await parkAll();
    const member = start({
      ports: ({ parked }) => ({
        started: startedRecords(),
        parked: {
          ...parked,
          claimDue: async (request) => {
            const claimed = await parked.claimDue(request);
            if (claimed.length > 0) void member.consumer.stop();
            return claimed;
          },
        },
      }),
    });
    await world.clock.advance(12_000);
    expect(member.effects()).toEqual([]);
    expect(member.parked()).toMatchObject(Array<object>(12).fill({ state: 'retry', attempts: 0, isRunning: false }));
  });

  test('are each charged once when one among them ends the process, and then run alone', async () => {
    await parkAll();
    const started = startedRecords();
    let deaths = 0;
    for (let process = 0; process < 6; process += 1) {
      const mortal: Mortal = { isDead: false };
      startMember(world, {
        options: { attemptsMax: 3, claimMs: 40_000, handlerMs: 10_000, retryConcurrency: 1 },
        ports: (ports) => ({ ...mortalPorts(ports, mortal), started }),
        handlers: {
          OrderPaid: async ({ event, session }) => {
            if (event.eventId === 'n4-1') {
              mortal.isDead = true;
              deaths += 1;
            }
            if (mortal.isDead) await new Promise(() => undefined);
            await session.effect(event.eventId);
          },
        },
      });
      await world.clock.advance(45_000);
      mortal.isDead = true;
    }
    expect(world.group('billing').effects.toSorted()).toEqual(ids.filter((id) => id !== 'n4-1').toSorted());
    expect(world.group('billing').parked()).toMatchObject([{ state: 'dead', attempts: 3 }]);
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
