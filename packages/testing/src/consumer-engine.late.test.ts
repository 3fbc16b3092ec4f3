import { NightporterError, sleep } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { history, makeDueUntried, start, world } from './consumer-engine.fixture.js';
import { send, settled, startedRecords } from './consumer-engine.support.js';

describe('however long it takes, something has an outcome', () => {
  const options = { retryScheduleMs: [1_000], handlerMs: 6_000, transactionMs: 2_000, claimMs: 21_000 };

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
    send(world, ...names.flatMap((name) => history(name, 1)));
    await settled(world);
    await makeDueUntried();
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
    await makeDueUntried();
    isReady = true;
    await world.clock.advance(20_000);
    expect(given).toEqual([true]);
    expect(member.effects().toSorted()).toEqual(names.map((name) => `${name}-1`).toSorted());
  });
});
