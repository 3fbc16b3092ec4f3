/**
 * The inventory worker with its inbox switched off: every message looks as if it came for the first time. Not part of the product:
 * `demo --worker` runs it, to see that the demo's check notices.
 */
import type { EventPlace, GroupState, GroupStore, Position } from '@nightporter/consumer';
import { createInventoryWorker } from '@nightporter/inventory-worker';
import type { AggregateKey } from '@nightporter/protocol';
import { runService } from '@nightporter/runtime';

await runService(createInventoryWorker({ storeOf: forgetful }));

function forgetful<Session>(store: GroupStore<Session>): GroupStore<Session> {
  return {
    transact: (work) =>
      store.transact((transaction) => {
        let known: GroupState | null = null;
        return work({
          session: transaction.session,
          load: async (events) => {
            known = await transaction.load(events);
            return {
              positions: justBefore(events),
              inboxByEvent: new Map(),
              inboxByVersion: new Map(),
              parked: new Map(),
              nowMs: known.nowMs,
            };
          },
          // The unique inbox would stop a second record, and so would give the fault away before the check can.
          save: (changes) =>
            transaction.save(
              changes.filter(
                (change) => change.kind !== 'settle' || known?.inboxByEvent.has(change.event.envelope.eventId) !== true,
              ),
            ),
        });
      }),
  };
}

/** Positions at which the first of these events of each aggregate is next in line. */
function justBefore(events: readonly EventPlace[]): ReadonlyMap<AggregateKey, Position> {
  const positions = new Map<AggregateKey, Position>();
  for (const { aggregate, envelope } of events) {
    const version = Math.min(
      envelope.aggregateVersion - 1,
      positions.get(aggregate)?.version ?? Number.POSITIVE_INFINITY,
    );
    positions.set(aggregate, { version, startVersion: 0, state: 'open' });
  }
  return positions;
}
