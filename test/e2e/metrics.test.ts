import { connectMongo } from '@nightporter/mongo';
import { METRIC_LABELS, PROCESS_METRICS } from '@nightporter/runtime';
import type { MongoClient } from 'mongodb';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { prometheusFiles, prometheusRules } from '../../scripts/src/promql.js';
import { showFigures } from '../support/figures.js';
import { sharedStack } from '../support/stack.js';
import { GROUPS, ORDERS, SERVICES, TABLES, startMetricsShop, type MetricsShop } from './metrics-shop.js';
import { samplesIn, type Sample, type Scrapes } from './metrics-scrapes.js';
import { builtFile, until } from './programs.js';

/** What operators are promised to see, and the metrics that show it. */
const SHOWN_BY: Readonly<Record<string, readonly string[]>> = {
  'outbox: events by status': ['nightporter_outbox_events'],
  'outbox: age of the oldest that is pending': ['nightporter_outbox_oldest_age_seconds'],
  'outbox: delay until published': ['nightporter_outbox_publish_delay_seconds'],
  'outbox: success rate of publishing': ['nightporter_relay_sends_total'],
  'outbox: retries': ['nightporter_relay_retries_total'],
  'outbox: rate of publishing': ['nightporter_relay_marks_total'],
  'relay: state': ['nightporter_relay_shard_state'],
  'relay: lag behind the cluster': ['nightporter_relay_lag_seconds'],
  'relay: age of the resume token': ['nightporter_relay_token_age_seconds'],
  'relay: headroom of the oplog': ['nightporter_relay_oplog_headroom_seconds'],
  'relay: restarts': ['process_start_time_seconds', 'nightporter_relay_streams_opened_total'],
  'relay: take-overs': ['nightporter_relay_takeovers_total', 'nightporter_relay_epoch'],
  'relay: repairs': ['nightporter_relay_repairs_total', 'nightporter_relay_repaired_rows_total'],
  'relay: failures of sends': ['nightporter_relay_sends_total'],
  'relay: failures of decoding': ['nightporter_relay_decode_failures_total'],
  'relay: window': ['nightporter_relay_window_rows', 'nightporter_relay_window_max_rows'],
  'consumer: lag': ['nightporter_consumer_watermark_lag_seconds'],
  'consumer: success and failure rate': ['nightporter_consumer_settled_total', 'nightporter_consumer_failures_total'],
  'consumer: duration of handlers': ['nightporter_consumer_handler_duration_seconds'],
  'consumer: duplicates': ['nightporter_consumer_duplicates_total'],
  'consumer: conflicts': ['nightporter_consumer_conflicts_total'],
  'consumer: gaps': ['nightporter_consumer_parkings_total', 'nightporter_consumer_versions_unavailable_total'],
  'consumer: parked, the retry queue and dead letters': ['nightporter_consumer_parked_events'],
  'consumer: new dead letters': ['nightporter_consumer_dead_letters_total'],
  'consumer: the oldest that is not consumed': ['nightporter_consumer_oldest_unconsumed_seconds'],
  'consumer: latency from commit to settled': ['nightporter_consumer_end_to_end_latency_seconds'],
  'consumer: service level': ['nightporter_consumer_slo_events_total', 'nightporter_consumer_slo_latency_seconds'],
};

/** Labels that Node's own metrics have, and the parser's of histograms and summaries. */
const NODE_LABELS = ['le', 'quantile', 'kind', 'type', 'space', 'version', 'major', 'minor', 'patch'];

let client: MongoClient;
let shop: MetricsShop;
let scrapes: Scrapes;

beforeAll(async () => {
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  shop = await startMetricsShop(client);
  scrapes = shop.scrapes;
});
afterAll(async () => {
  await shop.stop();
  await client.close();
});

const promtool = spawnSync('promtool', ['--version']);
const HELD_MINUTES = 60;

/** Which alarms promtool says fire where everything stays as it was scraped for so long, but for the metrics that are `changed`. */
function alarmsOf(
  alerts: readonly string[],
  changed: Readonly<Record<string, number>>,
): { readonly status: number | null; readonly fired: readonly string[] } {
  const series = SERVICES.flatMap((service) => {
    const place = { job: 'nightporter', instance: service };
    const all = [{ name: 'up', labels: {}, value: 1 }, ...scrapes.samplesOf(service)];
    return all.map(({ labels, name, value }) => {
      const written = Object.entries({ ...labels, ...place }).map(([label, text]) => `${label}="${text}"`);
      return { series: `${name}{${written.join(',')}}`, values: `${changed[name] ?? value}+0x${HELD_MINUTES}` };
    });
  });
  const expected = alerts.map((alertname) => ({ eval_time: `${HELD_MINUTES}m`, alertname, exp_alerts: [] }));
  const tests = [{ interval: '1m', input_series: series, alert_rule_test: expected }];
  const folder = mkdtempSync(join(tmpdir(), 'nightporter-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const file = join(folder, 'clean.json');
  writeFileSync(file, JSON.stringify({ rule_files: prometheusFiles('rules'), evaluation_interval: '1m', tests }));
  const run = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  const told = `${run.stdout}${run.stderr}`;
  return { status: run.status, fired: [...told.matchAll(/alertname: ?(\w+)/g)].map(([, name]) => name!) };
}

describe('/metrics of every process', () => {
  it.for(SERVICES)('of %s shows every metric that is declared, with its kind and meaning', (service, context) => {
    expect(scrapes.unseen(service)).toEqual([]);
    const declared = Object.keys(TABLES[service]).length + Object.keys(PROCESS_METRICS).length;
    showFigures(context, { declared, unseen: 0, samples: scrapes.samplesOf(service).length });
    const families = scrapes.familiesOf(service);
    for (const { name, kind, help } of Object.values(TABLES[service])) {
      expect(families.get(name)).toMatchObject({ type: kind.toUpperCase(), help });
    }
  });

  it.each(SERVICES)('of %s has no label that tells single things apart, by name or by value', (service) => {
    const samples = scrapes.samplesOf(service);
    const labels = samples.flatMap((sample) => Object.entries(sample.labels));
    expect(labels.filter(([name]) => !(name in METRIC_LABELS) && !NODE_LABELS.includes(name))).toEqual([]);
    const looksLikeAnId = /[0-9a-f]{8}-[0-9a-f]{4}|[0-9a-f]{20}|order\/|\/orders\/[^:]/;
    expect(labels.filter(([, value]) => looksLikeAnId.test(value))).toEqual([]);
    expect(samples.filter((sample) => sample.labels['service'] !== service)).toEqual([]);
  });

  it.skipIf(promtool.error !== undefined).each(SERVICES)('of %s satisfies promtool', (service) => {
    // What Node measures of itself is named by its client library.
    const own = scrapes
      .textOf(service)
      .split('\n')
      .filter((line) => /nightporter_|http_server_/.test(line));
    const check = spawnSync('promtool', ['check', 'metrics'], { input: `${own.join('\n')}\n`, encoding: 'utf8' });
    expect([check.status, check.stderr, check.stdout]).toEqual([0, '', '']);
  });

  it('together show every metric that the documentation lists', (context) => {
    const page = readFileSync(builtFile('docs/metrics.md'), 'utf8');
    const listed = [...page.matchAll(/^\| `(\w+)` \| (?:counter|gauge|histogram) \|/gm)].map(([, name]) => name!);
    expect(listed.length).toBeGreaterThan(70);
    const seen = new Set(SERVICES.flatMap((service) => scrapes.seen(service)));
    expect(listed.filter((name) => !seen.has(name))).toEqual([]);
    showFigures(context, { processes: SERVICES.length, metrics: listed.length, unseen: 0 });
  });

  it.each(Object.entries(SHOWN_BY))('show of the %s', (what, metrics) => {
    const service = what.startsWith('consumer') ? 'inventory-worker' : 'relay';
    expect(metrics.filter((metric) => !scrapes.seen(service).includes(metric))).toEqual([]);
  });

  it.skipIf(promtool.error !== undefined)(
    'sets off no alarm where nothing is wrong, and one where something is',
    (context) => {
      const alerts = prometheusRules().flatMap(({ alert }) => alert ?? []);
      expect(alarmsOf(alerts, {})).toEqual({ status: 0, fired: [] });
      const { fired } = alarmsOf(alerts, { nightporter_relay_shard_state: 0, nightporter_consumer_parked_events: 1 });
      expect(fired).toEqual(
        expect.arrayContaining(['NightporterRelayStopped', 'NightporterDeadLetter', 'NightporterSetAside']),
      );
      showFigures(context, {
        alarms: alerts.length,
        'firing in this clean run': 0,
        'firing where the relay has stopped and events are parked': fired.length,
      });
    },
  );

  it('says what has happened', async () => {
    const { databases, groups } = shop;
    const group = groups.inventory;
    const committed = await shop.committed('orders');
    expect(
      scrapes.valueOf('orders-api', 'http_server_request_duration_seconds_count', {
        http_route: '/orders',
        http_response_status_code: '201',
      }),
    ).toBe(ORDERS);
    const ofOrders = { topic: 'orders-events' };
    expect(scrapes.valueOf('relay', 'nightporter_relay_sends_total', { ...ofOrders, outcome: 'published' })).toBe(
      committed,
    );
    expect(scrapes.valueOf('relay', 'nightporter_relay_send_duration_seconds_count', ofOrders)).toBe(committed);
    expect(scrapes.valueOf('relay', 'nightporter_outbox_publish_delay_seconds_count', ofOrders)).toBe(committed);
    expect(scrapes.valueOf('relay', 'nightporter_relay_shard_state', { state: 'following' })).toBe(2);
    expect(scrapes.valueOf('relay', 'nightporter_outbox_events', {})).toBe(0);
    const settled = { group, ...ofOrders };
    expect(scrapes.valueOf('inventory-worker', 'nightporter_consumer_settled_total', settled)).toBe(committed);
    const created = { event_type: 'OrderCreated', outcome: 'completed' };
    expect(
      scrapes.valueOf('inventory-worker', 'nightporter_consumer_handler_duration_seconds_count', created),
    ).toBeGreaterThanOrEqual(ORDERS);
    // By the database's clock, over all hops: outbox, relay, message, consumer.
    expect(scrapes.valueOf('inventory-worker', 'nightporter_consumer_slo_events_total', { group })).toBe(committed);
    const latency = 'nightporter_consumer_end_to_end_latency_seconds_sum';
    expect(scrapes.valueOf('inventory-worker', latency, { group })).toBeGreaterThan(0);
    for (const name of GROUPS) {
      const worker = `${name}-worker` as const;
      expect(scrapes.valueOf(worker, 'nightporter_consumer_parked_events', { group: groups[name] })).toBe(0);
    }
    const registered = { producer: databases.orders };
    expect(scrapes.valueOf('inventory-worker', 'nightporter_consumer_registered', registered)).toBe(1);
    expect(SERVICES.map((service) => scrapes.valueOf(service, 'nightporter_ready', {}))).toEqual(SERVICES.map(() => 1));
  });
});

const metricsPort = inject('rocketmqMetricsPort');

describe.skipIf(metricsPort === null)('the exporter of the broker', () => {
  /** How many messages wait for a group, by what rules and dashboards ask for. */
  async function lagOf(group: string): Promise<readonly Sample[]> {
    const answer = await fetch(`http://127.0.0.1:${metricsPort!}/metrics`, { signal: AbortSignal.timeout(10_000) });
    const wanted = { consumer_group: group, topic: 'orders-events', is_retry: 'false' };
    return samplesIn(await answer.text()).filter(
      ({ labels, name }) =>
        name === 'rocketmq_consumer_lag_messages' &&
        Object.entries(wanted).every(([label, value]) => labels[label] === value),
    );
  }
  const valuesOf = async (group: string) => (await lagOf(group)).map(({ value }) => value);

  it('tells for each group how many messages wait, under the labels that the rules sum by', async () => {
    const { inventory, points } = shop.groups;
    await until('nothing waits for the group', async () => (await valuesOf(points)).join() === '0');
    await shop.kill('points-worker');
    await shop.order('nobody-hears-of-it');
    await until('one message waits for the group that is away', async () => (await valuesOf(points)).join() === '1');
    await until('and none for another', async () => (await valuesOf(inventory)).join() === '0');
  });
});
