import { graph, quantile, query, type Dashboard } from './panel.js';

export const CONSUMERS: Dashboard = {
  id: 'consumers',
  title: 'nightporter: consumer groups',
  panels: [
    graph(
      'Settled per second',
      'ops',
      'By group and outcome.',
      query('sum by (group, outcome) (rate(nightporter_consumer_settled_total[1m]))', '{{group}} {{outcome}}'),
    ),
    graph(
      'Failed attempts per second',
      'ops',
      'By group and error code.',
      query('sum by (group, code) (rate(nightporter_consumer_failures_total[1m]))', '{{group}} {{code}}'),
    ),
    graph(
      'Handlers',
      's',
      '99th percentile of a run, by event type.',
      query(
        quantile(0.99, 'nightporter_consumer_handler_duration_seconds', 'group, event_type'),
        '{{group}} {{event_type}}',
      ),
    ),
    graph(
      'Parked',
      'short',
      'Gaps, what stands behind them, the retry queue, dead letters.',
      query('max by (group, state) (nightporter_consumer_parked_events)', '{{group}} {{state}}'),
    ),
    graph(
      'Oldest parked',
      's',
      'By state.',
      query('max by (group, state) (nightporter_consumer_parked_oldest_age_seconds)', '{{group}} {{state}}'),
    ),
    graph(
      'Watermark lag',
      's',
      'LEDGER_LAG_MS and LEDGER_SWEEP_EVERY_MS together are normal.',
      query('max by (group, producer) (nightporter_consumer_watermark_lag_seconds)', '{{group}} ← {{producer}}'),
    ),
    graph(
      'Waiting at the broker',
      'short',
      'Messages, by the broker’s own exporter.',
      query('nightporter:broker_lag_messages', '{{group}} ← {{topic}}'),
    ),
    graph(
      'Duplicates and conflicts per second',
      'ops',
      'Absorbed, and decided anew.',
      query('sum by (group) (rate(nightporter_consumer_duplicates_total[1m]))', 'duplicates {{group}}'),
      query('sum by (group) (rate(nightporter_consumer_conflicts_total[1m]))', 'conflicts {{group}}'),
      query('sum by (group) (rate(nightporter_consumer_redelivered_total[1m]))', 'redelivered {{group}}'),
    ),
    graph(
      'Taken from the ledger',
      'short',
      'Within fifteen minutes: what the broker did not bring.',
      query('sum by (group) (increase(nightporter_consumer_ledger_missing_total[15m]))', '{{group}}'),
    ),
    graph(
      'Outages per second',
      'ops',
      'Calls to database and broker without an answer.',
      query('sum by (group) (rate(nightporter_consumer_database_failures_total[1m]))', 'database {{group}}'),
      query('sum by (group) (rate(nightporter_consumer_broker_failures_total[1m]))', 'broker {{group}}'),
    ),
  ],
};
