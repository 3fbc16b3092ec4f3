import type { Handlers } from '@nightporter/consumer';
import { createCatalogue, defineEvent, type EventEnvelope, type ReadVerdict } from '@nightporter/contracts';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { world, start } from './consumer-engine.fixture.js';
import { TOPIC, send, settled } from './consumer-engine.support.js';
import type { MemorySession } from './memory/index.js';

describe('an event of an older version', () => {
  const sample = { aggregateType: 'order', topic: TOPIC, type: 'OrderPaid' } as const;
  const first = defineEvent({ ...sample, version: 1, schema: z.object({ version: z.number() }) });
  const second = defineEvent({
    ...sample,
    version: 2,
    schema: z.object({ paid: z.object({ number: z.number() }) }),
    upcast: { from: first, data: ({ version }) => ({ paid: { number: version } }) },
  });
  const catalogue = createCatalogue([first, second]);
  const read = (envelope: EventEnvelope): ReadVerdict => catalogue.read(envelope);

  test('is read by the handler as the newest, and checked by its digest as it was written', async () => {
    send(world, { aggregateId: 'a', version: 1 });
    const seen: unknown[] = [];
    const handlers: Handlers<MemorySession> = {
      OrderPaid: async ({ event, session }) => {
        seen.push(event.eventVersion, event.data);
        await session.effect(event.eventId);
      },
    };
    const member = start({ handlers, options: { read } });
    await settled(world);
    expect(seen).toEqual([2, { paid: { number: 1 } }]);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['applied']);
    expect(member.parked()).toEqual([]);
  });

  test('is upcast anew after it was parked, whatever the handler did to what it was given', async () => {
    send(world, { aggregateId: 'a', version: 1 });
    const seen: unknown[] = [];
    const handlers: Handlers<MemorySession> = {
      OrderPaid: ({ event }) => {
        seen.push(structuredClone(event.data));
        (event.data as { paid: { number: number } }).paid.number = -1;
        return seen.length < 3 ? Promise.reject(new Error('not yet')) : Promise.resolve();
      },
    };
    const member = start({ handlers, options: { read, retryScheduleMs: [10] } });
    await world.clock.advance(1_000);
    expect(seen).toEqual(Array(3).fill({ paid: { number: 1 } }));
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['applied']);
  });

  test('is not harmed by a handler that changes its data and fails', async () => {
    send(world, { aggregateId: 'a', version: 1 });
    let runs = 0;
    const handlers: Handlers<MemorySession> = {
      OrderPaid: ({ event }) => {
        (event.data as { version: number }).version = -1;
        runs += 1;
        return runs === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve();
      },
    };
    const member = start({ handlers, options: { retryScheduleMs: [10] } });
    await world.clock.advance(1_000);
    expect(member.inbox().map(({ outcome }) => outcome)).toEqual(['applied']);
  });
});
