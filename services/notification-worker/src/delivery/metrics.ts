import type { Recorder } from '@nightporter/runtime';
import type { Channel } from '../domain/notice.js';
import type { DELIVERY_METRICS } from '../metrics-table.js';
import type { DeliveryVerdict, QueueFigures } from './ports.js';

export type DeliveryMetrics = Recorder<typeof DELIVERY_METRICS>;

export interface DeliveryFigures {
  /** Null where they are not known: then they are not told either. */
  readonly queue: () => Promise<QueueFigures | null>;
  readonly inHand: () => number;
}

const OUTCOMES: readonly DeliveryVerdict['kind'][] = ['sent', 'retry', 'dead', 'given-back'];

/** Shows zeros, since an alarm on a rise does not see the first of a series, and looks at the queue at each scrape. */
export function tellDelivery(metrics: DeliveryMetrics, channels: readonly Channel[], figures: DeliveryFigures): void {
  for (const channel of channels) for (const outcome of OUTCOMES) metrics.count('attempts', { channel, outcome }, 0);
  metrics.beforeScrape(() => {
    metrics.set('inHand', {}, figures.inHand());
  });
  metrics.beforeScrape(async () => {
    // Gone until they are known: a database that is away must not leave the last figures standing.
    setQueue(metrics, null);
    setQueue(metrics, await figures.queue());
  });
}

function setQueue(metrics: DeliveryMetrics, queue: QueueFigures | null): void {
  for (const state of ['pending', 'unserved', 'dead'] as const)
    metrics.set('notifications', { state }, queue?.[state] ?? null);
  metrics.set('oldestPending', {}, queue === null ? null : (queue.oldestPendingMs ?? 0) / 1_000);
}
