import type { MetricTable } from '@nightporter/runtime';

/** What the delivery of notifications tells Prometheus, beside the consumer that puts them down. */
export const DELIVERY_METRICS = {
  attempts: {
    kind: 'counter',
    name: 'nightporter_delivery_attempts_total',
    help: 'Attempts to send a notification, by how they ended: `sent`, `retry` (failed, tried again later), `dead` (given up) or `given-back` (the worker stopped). The failure rate is the share of `retry` and `dead`.',
    labels: ['channel', 'outcome'],
  },
  duration: {
    kind: 'histogram',
    name: 'nightporter_delivery_attempt_duration_seconds',
    help: 'From the claim of a notification until it was known what became of it.',
    labels: ['channel'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  },
  notifications: {
    kind: 'gauge',
    name: 'nightporter_delivery_notifications',
    help: 'Notifications now: `pending` (not sent yet, whichever way they go), `unserved` (those of them that no channel of this worker takes), `dead` (given up, for an operator). Every worker of a group tells the same of `pending` and `dead`: take the maximum.',
    labels: ['state'],
  },
  oldestPending: {
    kind: 'gauge',
    name: 'nightporter_delivery_oldest_pending_seconds',
    help: 'Since the event occurred whose notification has waited longest; 0 where none waits.',
  },
  inHand: {
    kind: 'gauge',
    name: 'nightporter_delivery_in_hand',
    help: 'Notifications that this worker is sending.',
  },
} as const satisfies MetricTable;
