import { figure, graph, quantile, query, type Dashboard } from './panel.js';

export const OVERVIEW: Dashboard = {
  id: 'overview',
  title: 'nightporter: overview',
  panels: [
    figure(
      'Processes not ready',
      'short',
      'Not ready means no progress; /readyz says why.',
      'count(nightporter_ready == 0) or vector(0)',
    ),
    figure(
      'Waiting in the outbox',
      'short',
      'Committed, and not published yet.',
      'sum(max by (status) (nightporter_outbox_events))',
    ),
    figure(
      'Dead in the outbox',
      'short',
      'They wait for an operator.',
      'max(nightporter_outbox_events{status="DEAD"})',
    ),
    figure(
      'Dead letters',
      'short',
      'Over all groups; they wait for an operator.',
      'sum(max by (group) (nightporter_consumer_parked_events{state="dead"}))',
    ),
    graph(
      'Events per second',
      'ops',
      'Published once, and settled once in each group.',
      query('sum(rate(nightporter_relay_sends_total{outcome="published"}[1m]))', 'published'),
      query('sum by (group) (rate(nightporter_consumer_settled_total[1m]))', 'settled: {{group}}'),
    ),
    graph(
      'Commit to settled',
      's',
      'On the database’s clock: median and 99th percentile of each group.',
      query(quantile(0.5, 'nightporter_consumer_end_to_end_latency_seconds', 'group'), 'p50 {{group}}'),
      query(quantile(0.99, 'nightporter_consumer_end_to_end_latency_seconds', 'group'), 'p99 {{group}}'),
    ),
    graph(
      'Requests per second',
      'reqps',
      'By route and status.',
      query(
        'sum by (http_route, http_response_status_code) (rate(http_server_request_duration_seconds_count[1m]))',
        '{{http_route}} {{http_response_status_code}}',
      ),
    ),
    graph(
      'Oldest unconsumed',
      's',
      'No event that was published longer ago is unsettled in the group.',
      query('max by (group) (nightporter_consumer_oldest_unconsumed_seconds)', '{{group}}'),
    ),
    graph(
      'Memory',
      'bytes',
      'Of each process.',
      query('process_resident_memory_bytes{job="nightporter"}', '{{service}} {{instance}}'),
    ),
    graph(
      'Event loop',
      's',
      'How late Node comes to its timers: processor time is short where it rises.',
      query('nodejs_eventloop_lag_p99_seconds{job="nightporter"}', '{{service}} {{instance}}'),
    ),
  ],
};
