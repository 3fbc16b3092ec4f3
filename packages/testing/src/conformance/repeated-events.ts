import type { GroupStore, IncomingEvent, RepeatedEvents } from '@nightporter/consumer';
import type { EventId } from '@nightporter/protocol';
import { describe, expect, it } from 'vitest';
import { commitChanges, positionChange } from './group-fixture.js';
import { incomingEvent } from './samples.js';

export interface RepeatsFixture<Session> {
  readonly store: GroupStore<Session>;
  readonly repeats: RepeatedEvents;
  /** The count on the inbox record of an event; null where it has none. */
  readonly duplicatesOf: (eventId: EventId) => Promise<number | null>;
}

/** Whatever confirms the belief of a duplicate filter keeps to this. The fixture brings a fresh group for each test. */
export function repeatedEventsConformance<Session>(
  name: string,
  makeFixture: () => Promise<RepeatsFixture<Session>>,
): void {
  describe(`${name} as a counter of repeats`, () => {
    it('confirms what is settled, counts it, and leaves out what it does not know', async () => {
      const { store, repeats, duplicatesOf } = await makeFixture();
      const [settled, other] = [1, 2].map((version) => incomingEvent({ aggregateId: 'a', version }));
      await settle(store, settled!, 1);
      expect([...(await repeats.count([settled!, other!]))]).toEqual([settled!.envelope.eventId]);
      await repeats.count([settled!]);
      expect(await duplicatesOf(settled!.envelope.eventId)).toBe(2);
      expect(await duplicatesOf(other!.envelope.eventId)).toBeNull();
    });

    it('confirms nothing of another event in the place of a settled one, nor of the same event elsewhere', async () => {
      const { store, repeats, duplicatesOf } = await makeFixture();
      const event = incomingEvent({ aggregateId: 'a', version: 1 });
      await settle(store, event, 1);
      const impostor = incomingEvent({ aggregateId: 'a', version: 1 });
      const elsewhere = incomingEvent({ aggregateId: 'b', version: 1 });
      const moved = { ...elsewhere, envelope: { ...elsewhere.envelope, eventId: event.envelope.eventId } };
      expect((await repeats.count([impostor, moved])).size).toBe(0);
      expect(await duplicatesOf(event.envelope.eventId)).toBe(0);
    });

    it('confirms nothing while the position is behind, since it would have to be moved on', async () => {
      const { store, repeats } = await makeFixture();
      const event = incomingEvent({ aggregateId: 'a', version: 3 });
      await settle(store, event, 2);
      expect((await repeats.count([event])).size).toBe(0);
    });
  });
}

async function settle<Session>(store: GroupStore<Session>, event: IncomingEvent, version: number): Promise<void> {
  await commitChanges(
    store,
    [event],
    [
      positionChange(event.aggregate, { version, startVersion: 0, state: 'open' }),
      { kind: 'settle', event, outcome: 'applied', attempts: 1 },
    ],
  );
}
