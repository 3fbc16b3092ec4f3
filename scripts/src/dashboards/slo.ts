import { figure, graph, quantile, query, type Dashboard } from './panel.js';

export const SLO: Dashboard = {
  id: 'slo',
  title: 'nightporter: service level',
  panels: [
    figure(
      'Settled in time, last hour',
      'percentunit',
      'Of the worst group; 99.5 % is the objective.',
      '1 - max(nightporter:slo_late:ratio_rate1h)',
    ),
    figure(
      'Budget left of 30 days',
      'percentunit',
      'Of the worst group.',
      'min(nightporter:slo_budget_left:ratio_30d)',
    ),
    graph(
      'Burn rate',
      'short',
      '1 spends the budget exactly in 30 days; 14.4 over an hour and 6 over six hours call somebody.',
      query('nightporter:slo_burn_rate{window=~"1h|6h|3d"}', '{{window}} {{group}}'),
    ),
    graph(
      'Late per second',
      'ops',
      'Settled later than SLO_LATENCY_MS.',
      query('sum by (group) (rate(nightporter_consumer_slo_events_total{within="false"}[5m]))', '{{group}}'),
    ),
    graph(
      'Commit to settled',
      's',
      '99.5th percentile against the limit.',
      query(quantile(0.995, 'nightporter_consumer_end_to_end_latency_seconds', 'group'), 'p99.5 {{group}}'),
      query('max by (group) (nightporter_consumer_slo_latency_seconds)', 'limit {{group}}'),
    ),
    graph(
      'Of which until published',
      's',
      '99th percentile of the relay’s part.',
      query(quantile(0.99, 'nightporter_outbox_publish_delay_seconds', 'topic'), '{{topic}}'),
    ),
  ],
};
