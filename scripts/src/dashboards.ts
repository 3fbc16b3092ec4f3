/** The dashboards of docker/grafana as a table; the JSON that Grafana reads is made of it. */

type Unit = 'short' | 's' | 'ops' | 'percentunit' | 'reqps' | 'bytes' | 'bool_yes_no';

interface Query {
  readonly expression: string;
  /** As Grafana writes it: `{{label}}`. */
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  /** What to make of it, for whoever looks at night. */
  readonly description: string;
  readonly kind: 'timeseries' | 'stat';
  readonly unit: Unit;
  readonly queries: readonly Query[];
}

export interface Dashboard {
  /** Name of its file, and part of its address. */
  readonly id: string;
  readonly title: string;
  readonly panels: readonly Panel[];
}

function graph(title: string, unit: Unit, description: string, ...queries: readonly Query[]): Panel {
  return { title, unit, description, kind: 'timeseries', queries };
}

function figure(title: string, unit: Unit, description: string, expression: string): Panel {
  return { title, unit, description, kind: 'stat', queries: [{ expression, legend: '' }] };
}

function query(expression: string, legend = ''): Query {
  return { expression, legend };
}

/** The n-th quantile of a histogram's last five minutes. */
function quantile(share: number, histogram: string, by: string): string {
  return `histogram_quantile(${share}, sum by (le, ${by}) (rate(${histogram}_bucket[5m])))`;
}

const OVERVIEW: Dashboard = {
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

const RELAY: Dashboard = {
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

const CONSUMERS: Dashboard = {
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

const SLO: Dashboard = {
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
      query('nightporter:slo_late:ratio_rate1h / 0.005', '1 h {{group}}'),
      query('nightporter:slo_late:ratio_rate6h / 0.005', '6 h {{group}}'),
      query('nightporter:slo_late:ratio_rate3d / 0.005', '3 d {{group}}'),
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

export const DASHBOARDS: readonly Dashboard[] = [OVERVIEW, RELAY, CONSUMERS, SLO];

const COLUMNS = 24;
const STAT = { width: 6, height: 4 };
const GRAPH = { width: 12, height: 8 };

/** A dashboard as Grafana reads it from a file. */
export function grafanaJson({ id, title, panels }: Dashboard): string {
  const places = placesOf(panels);
  const dashboard = {
    uid: `nightporter-${id}`,
    title,
    tags: ['nightporter'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    panels: panels.map((panel, index) => ({
      id: index + 1,
      type: panel.kind,
      title: panel.title,
      description: panel.description,
      datasource: { type: 'prometheus', uid: 'prometheus' },
      gridPos: places[index],
      fieldConfig: { defaults: { unit: panel.unit }, overrides: [] },
      targets: panel.queries.map(({ expression, legend }, order) => ({
        refId: String.fromCharCode('A'.charCodeAt(0) + order),
        expr: expression,
        ...(legend === '' ? {} : { legendFormat: legend }),
      })),
    })),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** From left to right; a panel that does not fit, or is of another height, begins a new line. */
function placesOf(panels: readonly Panel[]): readonly Place[] {
  const places: Place[] = [];
  let line = { x: 0, y: 0, height: 0 };
  for (const { kind } of panels) {
    const { width, height } = kind === 'stat' ? STAT : GRAPH;
    const isNewLine = line.x + width > COLUMNS || (line.x > 0 && line.height !== height);
    if (isNewLine) line = { x: 0, y: line.y + line.height, height };
    places.push({ x: line.x, y: line.y, w: width, h: height });
    line = { x: line.x + width, y: line.y, height };
  }
  return places;
}
