import { figure, graph, quantile, query, type Dashboard } from './panel.js';

export const RELAY: Dashboard = {
  id: 'relay',
  title: 'nightporter: outbox and relay',
  panels: [
    figure(
      'Relays at work',
      'short',
      'Shards that are carried by somebody.',
      'count(max by (shard) (nightporter_relay_shard_state{state=~"sweeping|following|polling"}) == 1) or vector(0)',
    ),
    figure(
      'Oldest pending',
      's',
      'By the database’s clock.',
      'max(nightporter_outbox_oldest_age_seconds{status="PENDING"})',
    ),
    figure(
      'Success rate',
      'percentunit',
      'Share of the sends of the last five minutes that were published.',
      'sum(rate(nightporter_relay_sends_total{outcome="published"}[5m])) / sum(rate(nightporter_relay_sends_total[5m]))',
    ),
    figure(
      'Oplog headroom',
      's',
      'Until the saved token cannot be resumed.',
      'min(nightporter_relay_oplog_headroom_seconds)',
    ),
    graph(
      'Outbox by status',
      'short',
      'Lower bounds while the outbox is capped.',
      query('max by (status) (nightporter_outbox_events)', '{{status}}'),
    ),
    graph(
      'Sends per second',
      'ops',
      'By topic and how they ended.',
      query('sum by (topic, outcome) (rate(nightporter_relay_sends_total[1m]))', '{{topic}} {{outcome}}'),
      query('sum(rate(nightporter_relay_retries_total[1m]))', 'retries'),
      query('sum(rate(nightporter_relay_decode_failures_total[1m]))', 'decode failures'),
    ),
    graph(
      'Publish delay',
      's',
      'Commit until the broker has it.',
      query(quantile(0.5, 'nightporter_outbox_publish_delay_seconds', 'topic'), 'p50 {{topic}}'),
      query(quantile(0.99, 'nightporter_outbox_publish_delay_seconds', 'topic'), 'p99 {{topic}}'),
    ),
    graph(
      'Send duration',
      's',
      'What the broker takes for an answer.',
      query(quantile(0.99, 'nightporter_relay_send_duration_seconds', 'topic'), 'p99 {{topic}}'),
    ),
    graph(
      'State of the shards',
      'short',
      'Which state each is in, at each relay.',
      query('nightporter_relay_shard_state == 1', '{{shard}} {{state}} {{instance}}'),
    ),
    graph(
      'Behind the cluster',
      's',
      'Lag of the stream, and age of the token.',
      query('min by (shard) (nightporter_relay_lag_seconds)', 'lag {{shard}}'),
      query('min by (shard) (nightporter_relay_token_age_seconds)', 'token {{shard}}'),
    ),
    graph(
      'Window',
      'short',
      'Rows in memory against the most there may be, lanes held, sends in flight.',
      query('max by (shard) (nightporter_relay_window_rows)', 'rows {{shard}}'),
      query('max by (shard) (nightporter_relay_window_max_rows)', 'most {{shard}}'),
      query('max by (shard) (nightporter_relay_lanes_held)', 'held {{shard}}'),
      query('max by (shard) (nightporter_relay_sends_in_flight)', 'in flight {{shard}}'),
    ),
    graph(
      'Take-overs and repairs',
      'short',
      'Within fifteen minutes.',
      query('sum by (shard) (increase(nightporter_relay_takeovers_total[15m]))', 'take-overs {{shard}}'),
      query('sum by (shard, reason) (increase(nightporter_relay_repairs_total[15m]))', '{{reason}} {{shard}}'),
      query('sum by (shard) (increase(nightporter_relay_streams_lost_total[15m]))', 'streams lost {{shard}}'),
    ),
  ],
};
