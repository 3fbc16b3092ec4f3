import { connectMongo, CONSUMER_COLLECTIONS } from '@nightporter/mongo';
import { HTTP_METRICS } from '@nightporter/http';
import { RELAY_METRICS } from '@nightporter/relay-service';
import { METRIC_LABELS, PROCESS_METRICS, type MetricTable } from '@nightporter/runtime';
import { CONSUMER_METRICS } from '@nightporter/worker';
import type { MongoClient } from 'mongodb';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import parse, { type MetricFamily } from 'parse-prometheus-text-format';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { prometheusFiles, prometheusRules } from '../../scripts/src/promql.js';
import { showFigures } from '../support/figures.js';
import { createGroup, createTopic, sharedStack, uniqueName } from '../support/stack.js';
import { buildPrograms, runService, until, untilReady, type Program, type ServiceName } from './programs.js';

const ORDERS = 3;
const order = { customerId: 'c', currency: 'EUR', lines: [{ productId: 'apple', quantity: 1, unitPriceMinor: 10 }] };
const SERVICES = ['orders-api', 'relay', 'inventory-worker'] as const satisfies readonly ServiceName[];
type Service = (typeof SERVICES)[number];

const OWN_TABLE: Readonly<Record<Service, MetricTable>> = {
  'orders-api': HTTP_METRICS,
  relay: RELAY_METRICS,
  'inventory-worker': CONSUMER_METRICS,
};

/** Labels that Node's own metrics have, and the parser's of histograms and summaries. */
const NODE_LABELS = ['le', 'quantile', 'kind', 'type', 'space', 'version', 'major', 'minor', 'patch'];

let client: MongoClient;
const running: Program[] = [];
const texts = new Map<Service, string>();
const names = { orders: uniqueName('o'), inventory: uniqueName('i'), relay: uniqueName('r'), group: uniqueName('g') };

beforeAll(async () => {
  buildPrograms('services/orders-api', 'services/relay', 'services/inventory-worker');
  client = await connectMongo({ uri: sharedStack().mongodbUri });
  await createTopic({ name: 'orders-events' });
  await createTopic({ name: 'inventory-events' });
  await createGroup({ name: names.group, topics: ['orders-events'] });
  const urls = new Map<Service, string>();
  await Promise.all(SERVICES.map(async (name) => urls.set(name, await untilReady(start(name)))));
  for (let index = 0; index < ORDERS; index += 1) await post(`${urls.get('orders-api')!}/orders`, order);
  const inbox = client.db(names.inventory).collection(CONSUMER_COLLECTIONS.inbox);
  await until('the orders are settled', async () => (await inbox.countDocuments()) === ORDERS);
  const scrape = async (name: Service): Promise<void> => {
    const answer = await fetch(`${urls.get(name)!}/metrics`, { signal: AbortSignal.timeout(10_000) });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    texts.set(name, await answer.text());
  };
  // What is read on a schedule, and what was marked last, shows a little later.
  await until('everything that was published is counted', async () => {
    await Promise.all(SERVICES.map(scrape));
    const isMarked = valueOf('relay', 'nightporter_relay_marks_total', { outcome: 'published' }) >= 2 * ORDERS;
    return isMarked && valueOf('relay', 'nightporter_outbox_events', {}) === 0 && unseen('relay').length === 0;
  });
});
afterAll(async () => {
  await Promise.all(running.splice(0).map((program) => program.destroy()));
  await client.close();
});

function start(name: Service): Program {
  const { mongodbUri, rocketmqEndpoints } = sharedStack();
  const own: Record<Service, Record<string, string>> = {
    'orders-api': { MONGODB_DB: names.orders },
    relay: {
      MONGODB_DB: names.relay,
      OUTBOX_NAMESPACES: `${names.orders}.outbox,${names.inventory}.outbox`,
      LEASE_MS: '7000',
      SHARDS: '2',
    },
    'inventory-worker': {
      MONGODB_DB: names.inventory,
      ORDERS_DB: names.orders,
      GROUP: names.group,
      STOCK: 'apple=1000',
    },
  };
  const program = runService(name, {
    MONGODB_URI: mongodbUri,
    ROCKETMQ_ENDPOINTS: rocketmqEndpoints,
    ...own[name],
  });
  running.push(program);
  return program;
}

async function post(url: string, body: unknown): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${await response.text()}`);
}

function familiesOf(service: Service): ReadonlyMap<string, MetricFamily> {
  return new Map(parse(texts.get(service) ?? '').map((family) => [family.name, family]));
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Line by line, since the parser drops the labels of histograms. */
function samplesOf(service: Service): readonly Sample[] {
  const lines = (texts.get(service) ?? '').split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', labels = '', value = ''] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label, text]);
    return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
  });
}

/** The sum over all series with these labels; NaN where there are none. */
function valueOf(service: Service, name: string, labels: Readonly<Record<string, string>>): number {
  const found = samplesOf(service).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
  );
  return found.length === 0 ? Number.NaN : found.reduce((sum, { value }) => sum + value, 0);
}

/** Metrics of the service's tables without any sample. */
function unseen(service: Service): readonly string[] {
  const families = familiesOf(service);
  const declared = [...Object.values(PROCESS_METRICS), ...Object.values(OWN_TABLE[service])];
  return declared.map(({ name }) => name).filter((name) => (families.get(name)?.metrics ?? []).length === 0);
}

const promtool = spawnSync('promtool', ['--version']);
const HELD_MINUTES = 60;

/** Which alarms promtool says fire where everything stays as it was scraped for so long, but for the metrics that are `changed`. */
function alarmsOf(
  alerts: readonly string[],
  changed: Readonly<Record<string, number>>,
): { readonly status: number | null; readonly fired: readonly string[] } {
  const series = SERVICES.flatMap((service) => {
    const place = { job: 'nightporter', instance: service };
    const all = [{ name: 'up', labels: {}, value: 1 }, ...samplesOf(service)];
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
    expect(unseen(service)).toEqual([]);
    const declared = Object.keys(OWN_TABLE[service]).length + Object.keys(PROCESS_METRICS).length;
    showFigures(context, { declared, unseen: 0, samples: samplesOf(service).length });
    const families = familiesOf(service);
    for (const { name, kind, help } of Object.values(OWN_TABLE[service])) {
      expect(families.get(name)).toMatchObject({ type: kind.toUpperCase(), help });
    }
  });

  it.each(SERVICES)('of %s has no label that tells single things apart, by name or by value', (service) => {
    const samples = samplesOf(service);
    const labels = samples.flatMap((sample) => Object.entries(sample.labels));
    expect(labels.filter(([name]) => !(name in METRIC_LABELS) && !NODE_LABELS.includes(name))).toEqual([]);
    const looksLikeAnId = /[0-9a-f]{8}-[0-9a-f]{4}|[0-9a-f]{20}|order\/|\/orders\/[^:]/;
    expect(labels.filter(([, value]) => looksLikeAnId.test(value))).toEqual([]);
    expect(samples.filter((sample) => sample.labels['service'] !== service)).toEqual([]);
  });

  it.skipIf(promtool.error !== undefined).each(SERVICES)('of %s satisfies promtool', (service) => {
    // What Node measures of itself is named by its client library.
    const own = texts
      .get(service)!
      .split('\n')
      .filter((line) => /nightporter_|http_server_/.test(line));
    const check = spawnSync('promtool', ['check', 'metrics'], { input: `${own.join('\n')}\n`, encoding: 'utf8' });
    expect([check.status, check.stderr, check.stdout]).toEqual([0, '', '']);
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

  it('says what has happened', () => {
    const { group } = names;
    expect(
      valueOf('orders-api', 'http_server_request_duration_seconds_count', {
        http_route: '/orders',
        http_response_status_code: '201',
      }),
    ).toBe(ORDERS);
    expect(valueOf('relay', 'nightporter_relay_sends_total', { topic: 'orders-events', outcome: 'published' })).toBe(
      ORDERS,
    );
    expect(valueOf('relay', 'nightporter_relay_send_duration_seconds_count', { topic: 'orders-events' })).toBe(ORDERS);
    expect(valueOf('relay', 'nightporter_relay_shard_state', { state: 'following' })).toBe(2);
    expect(valueOf('relay', 'nightporter_outbox_events', {})).toBe(0);
    expect(
      valueOf('inventory-worker', 'nightporter_consumer_settled_total', {
        group,
        topic: 'orders-events',
        outcome: 'applied',
      }),
    ).toBe(ORDERS);
    expect(
      valueOf('inventory-worker', 'nightporter_consumer_handler_duration_seconds_count', {
        event_type: 'OrderCreated',
      }),
    ).toBeGreaterThanOrEqual(1);
    // By the database's clock, over all hops: outbox, relay, message, consumer.
    expect(valueOf('inventory-worker', 'nightporter_consumer_slo_events_total', { group })).toBe(ORDERS);
    expect(
      valueOf('inventory-worker', 'nightporter_consumer_end_to_end_latency_seconds_sum', { group }),
    ).toBeGreaterThan(0);
    expect(valueOf('relay', 'nightporter_outbox_publish_delay_seconds_count', { topic: 'orders-events' })).toBe(ORDERS);
    expect(valueOf('inventory-worker', 'nightporter_consumer_parked_events', { group })).toBe(0);
    expect(valueOf('inventory-worker', 'nightporter_consumer_registered', { producer: names.orders })).toBe(1);
    expect(SERVICES.map((service) => valueOf(service, 'nightporter_ready', {}))).toEqual([1, 1, 1]);
  });
});
