import type { EventSummary, SearchRequest } from '@nightporter/ledger';
import { aggregateVersion, eventId, type AggregateKey } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { printEvents } from './tail.js';

/** The database's clock, an hour behind this computer's. */
const START_MS = Date.now() - 3_600_000;

function event(number: number, createdMs: number): EventSummary {
  return {
    eventId: eventId(`019a0000-0000-7000-8000-${String(number).padStart(12, '0')}`),
    ...{ eventType: 'OrderPaid', eventVersion: 1, source: 'orders', aggregate: 'orders/order/o-1' as AggregateKey },
    ...{ version: aggregateVersion(number + 1), topic: 'orders-events', status: 'PUBLISHED', headers: {} },
    ...{ occurredAt: new Date(createdMs), createdAt: new Date(createdMs), publishedAt: null },
    ...{ digest: 'sha256:0', producer: 'orders', place: 'outbox' },
  } as unknown as EventSummary;
}

/** Follows until so many are printed, or so many looks were taken; each look finds what `committed` says was there by then. */
async function printed(committed: (look: number) => readonly EventSummary[], nowMs: (look: number) => number) {
  const out: string[] = [];
  const stop = new AbortController();
  let look = -1;
  await printEvents(
    { out: (text) => out.push(text), signal: stop.signal },
    { everyMs: 1, json: true },
    {
      startedMs: START_MS,
      now: () => {
        look += 1;
        if (look > 3) stop.abort();
        return Promise.resolve(new Date(nowMs(look)));
      },
      page: ({ cursor, from, limit = 50 }: SearchRequest) => {
        const found = committed(look)
          .filter((one) => one.createdAt >= from! && (cursor === undefined || one.eventId < cursor))
          .toSorted((left, right) => (left.eventId < right.eventId ? 1 : -1));
        const events = found.slice(0, limit);
        return Promise.resolve({ events, cursor: found.length > limit ? events.at(-1)!.eventId : null });
      },
    },
  );
  return out.map((line) => (JSON.parse(line) as { eventId: string }).eventId);
}

const idsOf = (events: readonly EventSummary[]) => events.map((one) => one.eventId);

describe('following events', () => {
  it('prints all of them in order and each once, however many come between two looks', async () => {
    const all = Array.from({ length: 1_000 }, (_, number) => event(number, START_MS + number));
    expect(
      await printed(
        (look) => (look === 0 ? [] : all),
        (look) => START_MS + look * 1_000,
      ),
    ).toEqual(idsOf(all));
  });

  it('prints what was committed since the look before, however long ago that was', async () => {
    const early = event(1, START_MS + 5_000);
    const late = event(2, START_MS + 55_000);
    expect(
      await printed(
        (look) => (look === 0 ? [] : [early, late]),
        (look) => START_MS + look * 60_000,
      ),
    ).toEqual(idsOf([early, late]));
  });

  it('prints nothing of before its start on the database’s clock, and what a slow transaction commits late', async () => {
    const before = event(1, START_MS - 1);
    const late = event(2, START_MS + 100);
    const early = event(3, START_MS + 200);
    expect(
      await printed(
        (look) => (look === 0 ? [before, early] : [before, late, early]),
        (look) => START_MS + look * 1_000,
      ),
    ).toEqual(idsOf([early, late]));
  });
});
