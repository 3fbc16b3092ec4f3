import type { ConsumerOptions } from '@nightporter/consumer';
import { describe, expect, test } from 'vitest';
import { history, start, world } from './consumer-engine.fixture.js';
import { send, type Member } from './consumer-engine.support.js';

const OPTIONS = { attemptsMax: 2, retryScheduleMs: [1_000] };

const REFUSED = 'connection refused';

/** Whatever happens to the aggregate `a` fails while the service is down. */
function startCalling(failure: string, isTransient?: ConsumerOptions['isTransient']) {
  const service = { isDown: true };
  const attempts: number[] = [];
  const member: Member = start({
    options: { ...OPTIONS, ...(isTransient === undefined ? {} : { isTransient }) },
    handlers: {
      OrderPaid: async ({ attempt, event, session }) => {
        if (event.aggregateId === 'a') attempts.push(attempt);
        if (event.aggregateId === 'a' && service.isDown) throw new Error(failure);
        await session.effect(event.eventId);
      },
    },
  });
  send(world, ...history('a', 2), ...history('b', 2));
  return { member, service, attempts };
}

const isDown = (error: unknown): boolean => error instanceof Error && error.message === REFUSED;

describe('a failure that passes by itself', () => {
  test('costs no attempt however long it lasts, holds nobody else up, and its aggregate follows in order', async () => {
    const { member, service, attempts } = startCalling(REFUSED, isDown);
    await world.clock.advance(60_000);
    expect(member.effects()).toEqual(['b-1', 'b-2']);
    expect(member.parked()).toMatchObject([
      { state: 'retry', attempts: 0, failure: { message: REFUSED } },
      { state: 'behind' },
    ]);
    expect(attempts.length).toBeGreaterThan(20);
    expect(new Set(attempts)).toEqual(new Set([1]));
    expect(member.consumer.snapshot()).toMatchObject({ handlerFailures: 0, parked: { dead: 0 } });
    service.isDown = false;
    await world.clock.advance(5_000);
    expect(member.effects()).toEqual(['b-1', 'b-2', 'a-1', 'a-2']);
    expect(member.parked()).toEqual([]);
  });

  test.each([
    ['is of another kind', 'a bug', isDown],
    ['is judged by nobody', REFUSED, undefined],
    [
      'meets a judge that fails',
      REFUSED,
      () => {
        throw new Error('a bug in the judge');
      },
    ],
  ] as const)('is not seen in one that %s: its attempts are charged', async (_what, failure, isTransient) => {
    const { member, attempts } = startCalling(failure, isTransient);
    await world.clock.advance(60_000);
    expect(attempts).toEqual([1, 2]);
    expect(member.parked()).toMatchObject([{ state: 'dead', attempts: 2 }, { state: 'behind' }]);
    expect(member.consumer.snapshot()).toMatchObject({ handlerFailures: 2, state: 'running' });
  });
});
