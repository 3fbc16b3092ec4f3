import type { ConsumerTracer } from '@nightporter/consumer';
import { NightporterError } from '@nightporter/protocol';
import { describe, expect, test } from 'vitest';
import { history, start, world } from './consumer-engine.fixture.js';
import { send, settled } from './consumer-engine.support.js';

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736';

/** Writes down what the engine calls, in its order; run n of a handler has the span n. */
function recorder() {
  const calls: string[] = [];
  let runs = 0;
  const tracer: ConsumerTracer = {
    transaction: (messages) => {
      calls.push(`transaction of ${messages}`);
      return {
        handling: ({ event, attempt }) => {
          runs += 1;
          const name = `run ${runs} of ${event.envelope.eventId}, attempt ${attempt}`;
          calls.push(name);
          return {
            context: { traceparent: `${TRACE}-000000000000000${runs}-01` },
            run: async (handler) => {
              await handler();
              calls.push(`end of ${name}`);
            },
          };
        },
        ended: (end) => calls.push(end.kind === 'committed' ? 'committed' : `failed: ${String(end.error)}`),
      };
    },
  };
  return { calls, tracer };
}

describe('a tracer', () => {
  test('is told of each run of a handler, and of what its transaction came to, last', async () => {
    const { calls, tracer } = recorder();
    start({ ports: () => ({ tracer }) });
    send(world, ...history('a', 2));
    await settled(world);
    const begin = calls.indexOf('run 1 of a-1, attempt 1');
    expect(calls.slice(begin - 1)).toEqual([
      'transaction of 2',
      'run 1 of a-1, attempt 1',
      'end of run 1 of a-1, attempt 1',
      'run 2 of a-2, attempt 1',
      'end of run 2 of a-2, attempt 1',
      'committed',
    ]);
  });

  test('hears of a run whose transaction lost, before the next one', async () => {
    const { calls, tracer } = recorder();
    let conflicts = 1;
    start({
      ports: ({ store }) => ({
        tracer,
        store: {
          transact: (work) =>
            store.transact(async (transaction) => {
              const result = await work(transaction);
              conflicts -= 1;
              if (conflicts === 0) throw new NightporterError('NP_TRANSACTION_CONFLICT', 'lost');
              return result;
            }),
        },
      }),
    });
    send(world, { aggregateId: 'a', version: 1 });
    await world.clock.advance(1_000);
    expect(calls.filter((call) => !call.startsWith('end of'))).toEqual([
      'transaction of 1',
      'run 1 of a-1, attempt 1',
      'failed: NightporterError: lost',
      'transaction of 1',
      'run 2 of a-1, attempt 1',
      'committed',
    ]);
  });

  test('gives what a handler emits its trace', async () => {
    const { tracer } = recorder();
    start({
      ports: () => ({ tracer }),
      handlers: {
        OrderPaid: ({ emit }) =>
          emit({ aggregateType: 'invoice', aggregateId: 'i', eventType: 'InvoiceSent', payload: { amount: 1 } }),
      },
    });
    send(world, { aggregateId: 'a', version: 1 });
    await settled(world);
    expect([...world.database.outbox.rows()]).toMatchObject([
      { headers: { traceparent: `${TRACE}-0000000000000001-01`, causationId: 'a-1' } },
    ]);
  });
});
