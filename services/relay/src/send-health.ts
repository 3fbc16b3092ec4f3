import type { Clock } from '@nightporter/protocol';
import type { RelayEvent } from '@nightporter/relay';
import type { SendHealth } from './health.js';

/** Topics that are remembered as failing: outboxes may name more than are configured. */
const TOPICS_MAX = 100;

interface Failing {
  readonly failuresInARow: number;
  readonly lastAtMs: number;
  readonly lastError: string;
}

/** Keeps, per topic, the sends that have failed since one last succeeded. */
export function createSendHealth(clock: Clock): {
  observe: (event: RelayEvent) => void;
  failing: () => readonly SendHealth[];
} {
  const topics = new Map<string, Failing>();

  function failed(topic: string, lastError: string): void {
    const before = topics.get(topic);
    if (before === undefined && topics.size >= TOPICS_MAX) return;
    topics.set(topic, { failuresInARow: (before?.failuresInARow ?? 0) + 1, lastAtMs: clock.now(), lastError });
  }

  return {
    observe: (event) => {
      if (event.kind === 'published') topics.delete(event.row.topic);
      // A message that the broker refuses for what it is says nothing about the broker.
      if (event.kind === 'send-failed' && event.error.failure !== 'permanent') {
        failed(event.row.topic, event.error.message);
      }
      // The next owner's sends are none of ours. Where another shard still meets the same trouble, its next send says so.
      if (event.kind === 'lease-lost') topics.clear();
    },
    failing: () =>
      [...topics].map(([topic, { failuresInARow, lastAtMs, lastError }]) => ({
        topic,
        failuresInARow,
        sinceLastMs: clock.now() - lastAtMs,
        lastError,
      })),
  };
}
