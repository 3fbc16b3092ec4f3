import { versionKey, type IncomingEvent } from '@nightporter/consumer';
import { aggregateVersion } from '@nightporter/protocol';
import { expect, it } from 'vitest';
import { commitChanges, parkChange, type GroupFixture } from './group-fixture.js';
import { incomingEvent } from './samples.js';

type Events = [IncomingEvent, IncomingEvent, IncomingEvent, IncomingEvent, IncomingEvent, IncomingEvent];

/** Of a parked queue: what stands right behind a place. */
export function describeBehind<Session>(makeFixture: () => Promise<GroupFixture<Session>>): void {
  it('tells what waits right behind a place without a hole, in its order, and no more than the limit', async () => {
    const { store, parked } = await makeFixture();
    const [a2, a3, a4, a6, b2, c3] = [
      ['a', 2],
      ['a', 3],
      ['a', 4],
      ['a', 6],
      ['b', 2],
      ['c', 3],
    ].map(([aggregateId, version]) =>
      incomingEvent({ aggregateId: String(aggregateId), version: Number(version) }),
    ) as Events;
    const waiting = [a4, a2, a6, a3, b2, c3];
    await commitChanges(
      store,
      waiting,
      waiting.map((event, index) => parkChange(event, { state: index % 2 === 0 ? 'gap' : 'behind', retryInMs: null })),
    );
    const places = [a2, b2, c3].map(({ aggregate }) => ({ aggregate, version: aggregateVersion(1) }));
    const behind = async (limit: number) =>
      (await parked.behind(places, limit)).map((rows) => rows.map(({ event }) => event));
    expect(await behind(10)).toEqual([[a2, a3, a4], [b2], []]);
    expect(await behind(2)).toEqual([[a2, a3], [b2], []]);
    expect(await parked.behind([], 10)).toEqual([]);
    const [[first] = []] = await parked.behind(places, 1);
    const state = await store.transact((transaction) => transaction.load([a2]));
    expect(first).toEqual(state.parked.get(versionKey(a2.aggregate, 2)));
  });

  it.each([
    ['that is due', { state: 'retry' as const, retryInMs: 0 }],
    ['that is dead', { state: 'dead' as const, retryInMs: null }],
    ['that is suspect', { state: 'behind' as const, retryInMs: null, isSuspect: true as const }],
    ['that has been claimed before', { state: 'behind' as const, retryInMs: null, attempts: 1 }],
  ])('takes a message %s for a hole', async (_, details) => {
    const { store, parked } = await makeFixture();
    const events = [2, 3, 4].map((version) => incomingEvent({ aggregateId: 'a', version }));
    const waits = { state: 'behind' as const, retryInMs: null };
    await commitChanges(
      store,
      events,
      events.map((event, index) => parkChange(event, index === 1 ? details : waits)),
    );
    const [rows = []] = await parked.behind([{ aggregate: events[0]!.aggregate, version: aggregateVersion(1) }], 10);
    expect(rows.map(({ event }) => event)).toEqual([events[0]]);
  });
}
