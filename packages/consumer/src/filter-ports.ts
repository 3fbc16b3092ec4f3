/** What the fast duplicate filter needs of the world. As in ports.ts, each comment is the port's contract. */
import type { EventId } from '@nightporter/protocol';
import type { EventPlace } from './ports.js';

/**
 * Believes to know which events a group has settled. A belief is only a reason to look at the inbox first, by a cheaper way; the inbox
 * decides. So a filter may forget, lie, fail or hang, and costs no more than time. `seen` returns those of the events that
 * it takes for settled. `remember` is told of events once they are settled; nobody waits for it.
 */
export interface DuplicateFilter {
  seen(events: readonly EventId[]): Promise<ReadonlySet<EventId>>;
  remember(events: readonly EventId[]): Promise<void>;
}

/**
 * The group's inbox, asked outside of any transaction. `count` returns those of the events that are surely duplicates (the inbox has
 * the same event at the same place, and the position of its aggregate has come so far), and counts a repeat on each. What it does
 * not return may be one all the same. Rejects with NP_STORE_UNAVAILABLE.
 */
export interface RepeatedEvents {
  count(events: readonly EventPlace[]): Promise<ReadonlySet<EventId>>;
}

export interface DuplicatePorts {
  readonly filter: DuplicateFilter;
  readonly repeats: RepeatedEvents;
}
