/**
 * Every label that a metric may have, with what keeps its values few. A label multiplies what Prometheus has to keep, so an id, a name
 * that users choose, or a message never is one; those are in the log and in the ledger.
 */
export const METRIC_LABELS = {
  service: 'the name of the service; on everything, also on what Node itself measures',
  group: 'the consumer group; one per process',
  producer: 'the database of a producer that the group reads',
  topic: 'a topic of the configuration; anything else is `other`',
  event_type: 'a type that the worker has a handler for',
  shard: 'a shard of the relay: 1 to 64 of them',
  status: 'the status of an outbox row',
  state: 'a state of the parked queue, of a shard, or of a notification',
  outcome: 'how something ended; the description names all of them',
  code: 'a code of [errors.md](errors.md)',
  reason: 'one of a handful of sentences in the code',
  resumed: '`true` or `false`',
  within: '`true` or `false`: whether something took no longer than its limit',
  channel: 'a way by which customers are told: `log`, `webhook` or `smtp`',
  table: 'a table of the warehouse',
  http_request_method: 'a method that is routed, else `_OTHER`',
  http_route: 'the pattern of a route, else `unmatched`',
  http_response_status_code: 'an HTTP status',
} as const;

export type MetricLabel = keyof typeof METRIC_LABELS;
