import type { Gap, GapFinder } from '@nightporter/consumer';
import { aggregateIdentity, type AggregateKey } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { commitChanges, parkChange, positionChange, type GroupFixture } from './group-fixture.js';
import { incomingEvent } from './samples.js';

export interface GapFixture<Session> extends GroupFixture<Session> {
  readonly gaps: GapFinder;
}

const waiting = { retryInMs: null } as const;

/** Every finder of gaps keeps to this. The fixture brings a fresh group for each test. */
export function gapFinderConformance<Session>(name: string, makeFixture: () => Promise<GapFixture<Session>>): void {
  describe(`${name} as a finder of gaps`, () => {
    it('finds what is missing between the position and the lowest parked version, once that has waited', async () => {
      const { gaps, passTime, store } = await makeFixture();
      const [low, high] = [5, 8].map((version) => incomingEvent({ aggregateId: 'a', version }));
      await commitChanges(
        store,
        [low!, high!],
        [
          parkChange(high!, { ...waiting, state: 'gap' }),
          parkChange(low!, { ...waiting, state: 'gap' }),
          positionChange(low!.aggregate, { version: 2 }),
        ],
      );
      expect(await gaps.find({ olderThanMs: 60_000, after: null, limit: 10 })).toEqual({ gaps: [], after: null });
      await passTime(350);
      const found = await gaps.find({ olderThanMs: 200, after: null, limit: 10 });
      expect(found).toEqual({ gaps: [{ aggregate: low!.aggregate, from: 3, to: 4 }], after: null });
    });

    it('finds a gap of an aggregate without a position, and one whose messages once waited behind another', async () => {
      const { gaps, passTime, store } = await makeFixture();
      const first = incomingEvent({ aggregateId: 'a', version: 2 });
      const behind = incomingEvent({ aggregateId: 'b', version: 4 });
      await commitChanges(
        store,
        [first, behind],
        [
          parkChange(first, { ...waiting, state: 'gap' }),
          parkChange(behind, { ...waiting, state: 'behind' }),
          positionChange(behind.aggregate, { version: 2 }),
        ],
      );
      await passTime(350);
      const found = await gaps.find({ olderThanMs: 200, after: null, limit: 10 });
      expect(found.gaps).toEqual([
        { aggregate: first.aggregate, from: 1, to: 1 },
        { aggregate: behind.aggregate, from: 3, to: 3 },
      ]);
    });

    it('leaves alone what waits behind a parked version, and what is next in line', async () => {
      const { gaps, passTime, store } = await makeFixture();
      const behind = incomingEvent({ aggregateId: 'a', version: 4 });
      const next = incomingEvent({ aggregateId: 'b', version: 1 });
      await commitChanges(
        store,
        [behind, next],
        [
          parkChange(behind, { ...waiting, state: 'behind' }),
          positionChange(behind.aggregate, { version: 1, state: 'blocked' }),
          parkChange(next, { ...waiting, state: 'gap' }),
        ],
      );
      await passTime(350);
      expect((await gaps.find({ olderThanMs: 200, after: null, limit: 10 })).gaps).toEqual([]);
    });

    it('goes on where it stopped', async () => {
      const { gaps, passTime, store } = await makeFixture();
      const events = ['a', 'b', 'c'].map((aggregateId) => incomingEvent({ aggregateId, version: 2 }));
      await commitChanges(
        store,
        events,
        events.map((event) => parkChange(event, { ...waiting, state: 'gap' })),
      );
      await passTime(350);
      const first = await gaps.find({ olderThanMs: 200, after: null, limit: 2 });
      const second = await gaps.find({ olderThanMs: 200, after: first.after, limit: 2 });
      expect([first, second].map((found) => found.gaps.map(({ aggregate }) => aggregate))).toEqual([
        events.slice(0, 2).map(({ aggregate }) => aggregate),
        events.slice(2).map(({ aggregate }) => aggregate),
      ]);
      expect(second.after).toBeNull();
    });

    it.each([1, 2, 3, 10])('finds the same in pages of %i, whatever each message waits for', async (limit) => {
      const { gaps, passTime, store } = await makeFixture();
      const rows = [
        ...['a/gap/3', 'a/gap/4', 'a/gap/5', 'b/behind/5', 'b/gap/3', 'c/behind/4', 'c/gap/6'],
        ...['d/behind/4', 'd/behind/5', 'd/behind/6', 'e/gap/1', 'e/gap/2', 'f/behind/2', 'g/gap/3'],
      ].map((row) => row.split('/') as [string, 'gap' | 'behind', string]);
      const parked = rows.map(([aggregateId, state, version]) => {
        const event = incomingEvent({ aggregateId, version: Number(version) });
        return { event, change: parkChange(event, { ...waiting, state }) };
      });
      const events = parked.map(({ event }) => event);
      const blocked = events.find(({ envelope }) => envelope.aggregateId === 'd')!;
      await commitChanges(store, events, [
        ...parked.map(({ change }) => change),
        positionChange(blocked.aggregate, { version: 2, state: 'blocked' }),
      ]);
      await passTime(350);
      const found: Gap[] = [];
      let after: AggregateKey | null = null;
      for (let pages = 0; pages === 0 || after !== null; pages += 1) {
        expect(pages).toBeLessThan(30);
        const page: Awaited<ReturnType<GapFinder['find']>> = await gaps.find({ olderThanMs: 200, after, limit });
        found.push(...page.gaps);
        after = page.after;
      }
      expect(
        found.map(({ aggregate, from, to }) => `${aggregateIdentity(aggregate).aggregateId} ${from}-${to}`),
      ).toEqual(['a 1-2', 'b 1-2', 'c 1-3', 'f 1-1', 'g 1-2']);
    });
  });
}
