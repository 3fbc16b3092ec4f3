import { NightporterError, type EventId } from '@nightporter/protocol';
import type { DuplicateFilter } from './filter-ports.js';

const EVENTS_MAX = 100_000;

/**
 * A filter in the memory of this process, which forgets the event that was looked for or settled longest ago. It knows what this process has
 * settled, which is what a lost acknowledgement brings again.
 */
export function createMemoryFilter({ eventsMax = EVENTS_MAX }: { eventsMax?: number } = {}): DuplicateFilter {
  if (!Number.isSafeInteger(eventsMax) || eventsMax < 1) {
    const message = `eventsMax of a memory filter is ${eventsMax}; accepted: an integer of 1 or more.`;
    throw new NightporterError('NP_CONFIG_INVALID', message);
  }
  // A set gives its members back in the order in which they were added.
  const known = new Set<EventId>();

  function refresh(event: EventId): void {
    known.delete(event);
    known.add(event);
  }

  return {
    seen(events) {
      const found = events.filter((event) => known.has(event));
      found.forEach(refresh);
      return Promise.resolve(new Set(found));
    },
    remember(events) {
      events.forEach(refresh);
      for (const oldest of known) {
        if (known.size <= eventsMax) break;
        known.delete(oldest);
      }
      return Promise.resolve();
    },
  };
}
