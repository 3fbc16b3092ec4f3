import { sleep } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import {
  commits,
  failingFor,
  history,
  makeDueUntried,
  start,
  startDraining,
  world,
} from './consumer-engine.fixture.js';
import {
  mortalPorts,
  send,
  settled,
  startMember,
  startedRecords,
  stopMember,
  type Mortal,
} from './consumer-engine.support.js';

describe('events that have their turn at once', () => {
  const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
  const ids = names.map((name) => `${name}-1`);

  /** Parks the first version of each as due, as the ledger does. */
  async function parkAll(last = 1): Promise<void> {
    const parking = start({ handlers: failingFor(new Set(ids)), options: { retryScheduleMs: [3_600_000] } });
    send(world, ...names.flatMap((name) => history(name, last)));
    await settled(world);
    await stopMember(world, parking);
    await makeDueUntried();
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
    const limits = { handlerMs: 10_000, transactionMs: 5_000, claimMs: 40_000 };
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
        options: { attemptsMax: 3, claimMs: 41_000, handlerMs: 10_000, retryConcurrency: 1 },
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
