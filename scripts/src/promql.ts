import { HTTP_METRICS } from '@nightporter/http';
import { DELIVERY_METRICS } from '@nightporter/notification-worker';
import { RELAY_METRICS } from '@nightporter/relay-service';
import { PROCESS_METRICS, type MetricTable } from '@nightporter/runtime';
import { LANDER_METRICS } from '@nightporter/warehouse-worker';
import { CONSUMER_METRICS } from '@nightporter/worker';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** Names that stand in an expression without being a metric. */
const WORDS = new Set(['and', 'or', 'unless', 'offset', 'bool']);

/** The metrics that a PromQL expression asks for: what is neither a function, a keyword, a label nor a text. */
export function metricsIn(expression: string): readonly string[] {
  const bare = expression
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ');
  const names = [...bare.matchAll(/[a-zA-Z_:][a-zA-Z0-9_:]*(?![a-zA-Z0-9_:])(?!\s*\()/g)].map(([name]) => name);
  return [...new Set(names.filter((name) => !WORDS.has(name)))];
}

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const FOLDER = fileURLToPath(new URL('../../docker/prometheus/', import.meta.url));

/** The files of docker/prometheus/rules, or of tests. */
export function prometheusFiles(kind: 'rules' | 'tests'): readonly string[] {
  return readdirSync(`${FOLDER}${kind}`).map((name) => `${FOLDER}${kind}/${name}`);
}

/** What is evaluated together, from top to bottom; one group knows nothing of another's turn. */
export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly Rule[];
}

export function prometheusGroups(): readonly RuleGroup[] {
  return prometheusFiles('rules').flatMap(
    (file) => (parse(readFileSync(file, 'utf8')) as { groups: readonly RuleGroup[] }).groups,
  );
}

export function prometheusRules(): readonly Rule[] {
  return prometheusGroups().flatMap(({ rules }) => rules);
}

const TABLES: readonly MetricTable[] = [
  PROCESS_METRICS,
  RELAY_METRICS,
  CONSUMER_METRICS,
  DELIVERY_METRICS,
  LANDER_METRICS,
  HTTP_METRICS,
];

/** What Prometheus itself and Node's client add, as far as we ask for it. */
const OF_OTHERS = [
  'up',
  'process_start_time_seconds',
  'process_resident_memory_bytes',
  'nodejs_eventloop_lag_p99_seconds',
];

/** What RocketMQ's exporter tells; test/e2e/metrics.test.ts finds it in a real one. */
const OF_THE_BROKER = ['rocketmq_consumer_lag_messages'];

/** Every name that an expression may ask for: our metrics as Prometheus stores them, what the rules record, and a few of others. */
export function knownMetrics(): ReadonlySet<string> {
  const ours = TABLES.flatMap((table) => Object.values(table)).flatMap(({ kind, name }) =>
    kind === 'histogram' ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
  );
  return new Set([...ours, ...prometheusRules().flatMap(({ record }) => record ?? []), ...OF_OTHERS, ...OF_THE_BROKER]);
}
