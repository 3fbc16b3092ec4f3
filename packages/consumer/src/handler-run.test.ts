import type { EventEnvelope } from '@nightporter/contracts';
import { Wakeup, aggregateVersion, eventId, type Clock } from '@nightporter/protocol';
import { expect, test } from 'vitest';
import { RolledBack } from './failure.js';
import { runHandler, type HandlerRun } from './handler-run.js';

const event: EventEnvelope = {
  eventId: eventId('e1'),
  source: 'orders',
  eventType: 'OrderPaid',
  eventVersion: 1,
  aggregateType: 'order',
  aggregateId: '1',
  aggregateVersion: aggregateVersion(1),
  occurredAt: '2026-01-02T03:04:05.678Z',
  data: null,
};
const request = { aggregateType: 'invoice', aggregateId: '1', eventType: 'InvoiceSent', payload: null };

/** A clock whose timers the test fires. */
function handClock(): Clock & { readonly timers: Set<() => void> } {
  const timers = new Set<() => void>();
  return {
    timers,
    now: () => 0,
    after: (_delayMs, run) => {
      timers.add(run);
      return () => timers.delete(run);
    },
  };
}

function run(handler: HandlerRun<string>['handler'], more: Partial<HandlerRun<string>> = {}): Promise<unknown> {
  return runHandler({
    handler,
    event,
    session: 'session',
    emit: () => Promise.resolve(),
    attempt: 2,
    limitMs: 1_000,
    clock: handClock(),
    rollBack: new Wakeup(),
    ...more,
  }).catch((error: unknown) => error);
}

test('a handler gets its event, session and attempt, and leaves no timer behind', async () => {
  const clock = handClock();
  const seen: unknown[] = [];
  await run(
    (context) => {
      seen.push(context.event, context.session, context.attempt, context.signal.aborted);
      return Promise.resolve();
    },
    { clock },
  );
  expect(seen).toEqual([event, 'session', 2, false]);
  expect(clock.timers.size).toBe(0);
});

test('an error of a handler is passed on as it is, with the labels that the driver put on it', async () => {
  const thrown = Object.assign(new Error('driver'), { errorLabels: ['TransientTransactionError'] });
  expect(await run(() => Promise.reject(thrown))).toBe(thrown);
});

test('a handler that throws before its first await fails like any other', async () => {
  const result = await run(() => {
    throw new Error('at once');
  });
  expect(result).toMatchObject({ message: 'at once' });
});

test('the time limit aborts the signal and names the event', async () => {
  const clock = handClock();
  let reason: unknown;
  const result = run(
    ({ signal }) => {
      signal.addEventListener('abort', () => {
        reason = signal.reason;
      });
      return new Promise(() => undefined);
    },
    { clock },
  );
  for (const fire of clock.timers) fire();
  expect(await result).toMatchObject({ code: 'NP_HANDLER_FAILED', message: expect.stringContaining('OrderPaid e1') });
  expect(reason).toBe(await result);
});

test('a roll-back ends the wait, and a consumer that is already rolling back starts no handler', async () => {
  const rollBack = new Wakeup();
  const result = run(() => new Promise(() => undefined), { rollBack });
  rollBack.ringForGood();
  expect(await result).toBeInstanceOf(RolledBack);
  let started = false;
  const second = await run(
    () => {
      started = true;
      return Promise.resolve();
    },
    { rollBack },
  );
  expect(second).toBeInstanceOf(RolledBack);
  expect(started).toBe(false);
});

test('an emit that the handler did not wait for is waited for, and its failure is the handler’s', async () => {
  let finish: (error: Error) => void = () => undefined;
  const result = run(
    ({ emit }) => {
      void emit(request);
      return Promise.resolve();
    },
    {
      emit: () =>
        new Promise((_resolve, reject) => {
          finish = reject;
        }),
    },
  );
  await Promise.resolve();
  await Promise.resolve();
  finish(new Error('not saved'));
  expect(await result).toMatchObject({ message: 'not saved' });
});

test('an emit after the handler has ended is refused', async () => {
  let late: ((event: typeof request) => Promise<void>) | undefined;
  await run(({ emit }) => {
    late = emit;
    return Promise.resolve();
  });
  await expect(late?.(request)).rejects.toMatchObject({ code: 'NP_NO_TRANSACTION' });
});

test.each<[string, HandlerRun<string>['handler']]>([
  [
    'it did not wait for',
    async ({ emit }) => {
      void emit(request);
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    },
  ],
  ['it caught', ({ emit }) => emit(request).catch(() => undefined)],
])('a handler fails with the emit that %s: its effect must not commit without its event', async (_how, handler) => {
  const refused = new Error('refused');
  expect(await run(handler, { emit: () => Promise.reject(refused) })).toBe(refused);
});
